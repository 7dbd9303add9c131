"""How long linting takes, as a multiple of what PyYAML's C loader needs for the same files.

Run with `-s` to see the ratio; a benchmark says nothing about right and wrong, so nothing is asserted about time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from vally import PluginHost, find_project, read_eval_spec
from vally_command_lint.linting import LintOptions, lint

SPECS = 300
STIMULI = 2_000
ROUNDS = 5
HEAD = """\
name: eval-{number}
description: Checks one feature
type: capability
defaults:
  runs: 3
  timeout: 5m
  executor: mock
scoring:
  threshold: 0.8
stimuli:
"""
STIMULUS = """\
  - name: stimulus-{number}
    prompt: |
      Write a file named out-{number}.txt with a short summary of the change.
      Keep it under ten lines.
    tags:
      area: a{area}
    graders:
      - type: output-contains
        config:
          substring: done {number}
      - type: output-matches
        config:
          pattern: '(?i)summary of\\s+item {number}'
      - type: file-exists
        config:
          path: out-{number}.txt
    constraints:
      max_turns: 10
      expect_tools: [write_file]
"""


def write_specs(root: Path) -> list[Path]:
    """Specs with all stimuli spread evenly."""
    written, count = [], 0
    for number in range(SPECS):
        path = root / f"evals/e{number:03}/eval.yaml"
        path.parent.mkdir(parents=True)
        upto = STIMULI * (number + 1) // SPECS
        stimuli = "".join(STIMULUS.format(number=index, area=index % 7) for index in range(count, upto))
        path.write_text(HEAD.format(number=number) + stimuli, encoding="utf-8")
        written.append(path)
        count = upto
    return written


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def median_seconds(*works: Callable[[], object]) -> list[float]:
    """Processor time of each, measured in turns, so that what else the machine does hits all alike."""
    for work in works:
        work()
    rounds = [[cpu_seconds(work) for work in works] for _ in range(ROUNDS)]
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


@pytest.mark.heavy
def test_linting_300_specs_with_2000_stimuli(tmp_path: Path) -> None:
    files = write_specs(tmp_path)
    host, project = PluginHost(), find_project(tmp_path, tmp_path)

    def load() -> None:
        for file in files:
            yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader)

    def check() -> None:
        report = lint(LintOptions(specs=("evals",)), cwd=tmp_path, project=project, host=host)
        assert len(report.evals) == SPECS
        assert report.passed
        assert not list(report.all_findings)

    loading, linting = median_seconds(load, check)
    print(f"\nC loader {loading:.3f} s, lint {linting:.3f} s, ratio {linting / loading:.2f}")


@pytest.mark.heavy
def test_reading_a_long_spec_with_and_without_looking_for_garbage(tmp_path: Path) -> None:
    path = tmp_path / "eval.yaml"
    stimuli = "".join(STIMULUS.format(number=index, area=index % 7) for index in range(STIMULI))
    path.write_text(HEAD.format(number=0) + stimuli, encoding="utf-8")
    host, project = PluginHost(), find_project(tmp_path, tmp_path)

    def as_it_is() -> None:
        assert read_eval_spec(path, host=host, project=project).spec is not None

    def looking_for_garbage() -> None:
        assert read_eval_spec.__wrapped__(path, host=host, project=project).spec is not None  # type: ignore[attr-defined]

    without, looking = median_seconds(as_it_is, looking_for_garbage)
    size = path.stat().st_size / 2**20
    print(f"\n{size:.1f} MiB: {without:.3f} s, with collections {looking:.3f} s, ratio {looking / without:.2f}")
