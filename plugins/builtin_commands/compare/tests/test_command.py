"""The command with a comparing grader of its own, and nothing else installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vally import CompareInput, CompareResult, GraderSpec
from vally.testing import run_cli


class Longer:
    """Prefers the longer output."""

    def grade(self, input: Any) -> Any:
        """Grade nothing."""
        raise AssertionError("comparing does not grade")

    def compare(self, input: CompareInput[Any]) -> CompareResult:
        """Compare lengths."""
        longer = len(input.treatment.output) > len(input.baseline.output)
        if longer:
            return CompareResult(winner="treatment", magnitude="much-better", score=1.0, evidence="longer")
        return CompareResult(winner="tie", magnitude="equal", score=0.0, evidence="as long")


def side(path: Path, *outputs: str) -> None:
    records = [
        {"stimulus": "s", "trialIndex": index, "trajectory": {"output": output, "events": []}}
        for index, output in enumerate(outputs)
    ]
    path.write_text("".join(json.dumps(item) + "\n" for item in records))


def compare(root: Path, *words: str, comparable: bool = True) -> Any:
    record = GraderSpec(name="longer", summary="prefers the longer output", factory=Longer, comparable=comparable)
    sides = ["--baseline", "a.jsonl", "--treatment", "b.jsonl"]
    return run_cli(["compare", *sides, "--grader", "longer", *words], cwd=root, plugins=[record])


def test_outcomes_of_any_age_are_compared(tmp_path: Path) -> None:
    side(tmp_path / "a.jsonl", "x", "x", "x")
    side(tmp_path / "b.jsonl", "xx", "xx", "x")
    result = compare(tmp_path, "--output", "c.jsonl")
    assert result.exit_code == 0, result.stderr
    record = json.loads((tmp_path / "c.jsonl").read_text())
    assert (record["summary"]["wins"], record["summary"]["ties"]) == (2, 1)
    assert "  ▲ s   +0.67   2W 1T 0L" in result.stdout.splitlines()


def test_quiet_leaves_the_verdict(tmp_path: Path) -> None:
    side(tmp_path / "a.jsonl", "x", "x")
    side(tmp_path / "b.jsonl", "x", "x")
    assert compare(tmp_path, "--quiet").stdout.splitlines()[1:] == ["No credible difference (underpowered)"]


@pytest.mark.parametrize(
    "words", [("--workers", "0"), ("--min-effect", "-1"), ("--min-effect", "nan"), ("--baseline",)]
)
def test_wrong_values_are_usage_errors(tmp_path: Path, words: tuple[str, ...]) -> None:
    side(tmp_path / "a.jsonl", "x")
    side(tmp_path / "b.jsonl", "x")
    assert compare(tmp_path, *words).exit_code == 2


@pytest.mark.parametrize("output", ["a.jsonl", "b.jsonl", "./b.jsonl", "link.jsonl"])
def test_the_records_never_take_the_place_of_what_is_compared(tmp_path: Path, output: str) -> None:
    side(tmp_path / "a.jsonl", "x")
    side(tmp_path / "b.jsonl", "x")
    (tmp_path / "link.jsonl").symlink_to("a.jsonl")
    before = [(tmp_path / name).read_bytes() for name in ("a.jsonl", "b.jsonl")]
    result = compare(tmp_path, "--output", output)
    assert (result.exit_code, f"--output: '{output}' is compared" in result.stderr) == (1, True)
    assert [(tmp_path / name).read_bytes() for name in ("a.jsonl", "b.jsonl")] == before


def test_a_grader_that_cannot_compare_is_refused(tmp_path: Path) -> None:
    side(tmp_path / "a.jsonl", "x")
    side(tmp_path / "b.jsonl", "x")
    result = compare(tmp_path, comparable=False)
    assert (result.exit_code, "grader 'longer' cannot compare" in result.stderr) == (1, True)
