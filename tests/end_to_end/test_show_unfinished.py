"""Runs without a summary: trials count as they would at the end of the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vally.testing import ProjectBuilder, run_cli

HALF = [{"type": "output-contains", "config": {"substring": word}} for word in ("hello", "never said")]
STIMULUS = {"name": "s", "prompt": "hello", "graders": HALF}


def cut_off(root: Path) -> None:
    """Take the summaries away, as if the run had been killed before its end."""
    for path in root.glob("out/**/results.jsonl"):
        lines = path.read_bytes().splitlines(keepends=True)
        assert b'"run-summary"' in lines[-1]
        path.write_bytes(b"".join(lines[:-1]))


def seen(root: Path) -> tuple[float | None, str, list[Any]]:
    """The pass rate that `runs` tells, the report of `show`, and what it takes for failed."""
    (listed,) = json.loads(run_cli(["runs", "out", "--output", "json"], cwd=root).stdout)["runs"]
    (directory,) = (root / "out").iterdir()
    report = run_cli(["show", str(directory)], cwd=root).stdout
    failed = run_cli(["show", str(directory), "--failed", "--output", "json"], cwd=root).stdout
    assert listed["verdict"] == "incomplete"
    return listed["passRate"], report, json.loads(failed) if failed.strip() else []


@pytest.mark.parametrize(
    ("scoring", "words", "rate"),
    [
        ({"threshold": 0.5}, [], 1),
        ({"threshold": 0.5}, ["--threshold", "0.6"], 0),
        ({"threshold": 0.6}, ["--threshold", "0.5", "--model", "a,b"], 1),
        ({"threshold": 0.5, "pass_rate": 1}, [], 1),
        ({}, [], 0),
    ],
)
def test_a_run_that_was_killed(tmp_path: Path, scoring: dict[str, Any], words: list[str], rate: int) -> None:
    ProjectBuilder(tmp_path).eval("e", [STIMULUS], defaults={"executor": "mock", "runs": 2}, scoring=scoring)
    run_cli(["eval", "-e", "evals/e/eval.yaml", "--output-dir", "out", *words], cwd=tmp_path)
    cut_off(tmp_path)
    told, report, failed = seen(tmp_path)
    assert told == rate
    assert f"{2 * rate}/2 trials passed" in report
    assert len(failed) == 2 * (1 - rate)


def test_an_experiment_that_was_killed(tmp_path: Path) -> None:
    project = ProjectBuilder(tmp_path)
    project.eval("e", [STIMULUS], defaults={"executor": "mock"}, scoring={"threshold": 0.5})
    variants = {"base": {}, "other": {"overrides": {"model": "x"}}}
    file = project.experiment(variants=variants, vary=["/defaults/model"], baseline="base")
    run_cli(["experiment", "run", file.name, "--output-dir", "out"], cwd=tmp_path)
    cut_off(tmp_path)
    told, report, failed = seen(tmp_path)
    assert (told, failed) == (1, [])
    assert report.count("1/1 trials passed") == 2


@pytest.mark.parametrize("specs", ["none", [], [7], [{"path": "evals/e/eval.yaml", "scoring": {"threshold": "0.5"}}]])
def test_a_manifest_that_does_not_tell_what_was_planned(tmp_path: Path, specs: Any) -> None:
    ProjectBuilder(tmp_path).eval("e", [STIMULUS], defaults={"executor": "mock"}, scoring={"threshold": 0.5})
    run_cli(["eval", "-e", "evals/e/eval.yaml", "--output-dir", "out"], cwd=tmp_path)
    cut_off(tmp_path)
    (manifest,) = tmp_path.glob("out/*/run-manifest.json")
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "specs": specs}))
    assert seen(tmp_path)[0] == 0
