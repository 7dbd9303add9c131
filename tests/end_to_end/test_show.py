"""`vally show`: reports of stored runs, by the reporter for people."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vally import ReporterSpec, RunComplete, dump_record, record_line
from vally.testing import CliResult, run_cli, trial_result

Vally = Callable[..., CliResult]
WriteRun = Callable[..., Path]
Make = Any


def test_without_a_selection_the_report_of_the_newest_run(write_run: WriteRun, make: Make, vally: Vally) -> None:
    write_run(*make.three_trials(), name="2025-01-01T00-00-00-000Z")
    write_run(*make.three_trials())
    result = vally("show")
    assert result.exit_code == 0
    assert "━━━ greets ━━━\n✘ FAIL  2/3 trials passed" in result.stdout
    assert "Trial 2/3" in result.stdout
    assert "Trial 1/3" not in result.stdout
    assert "FAILED  0 of 1 evals passed · 3 trials" in result.stdout
    assert "JSONL → vally-results/2026-01-02T03-04-05-678Z/results.jsonl" in result.stdout
    assert result.stdout.endswith("Output directory: vally-results/2026-01-02T03-04-05-678Z\n")
    assert result.stderr == ""


@pytest.mark.parametrize(
    "word", ["latest", "scripted", "2026-01-02T03-04-05-678Z", "vally-results/2026-01-02T03-04-05-678Z"]
)
def test_a_run_has_several_names(word: str, write_run: WriteRun, make: Make, vally: Vally) -> None:
    write_run(*make.three_trials())
    assert vally("show", word).stdout == vally("show").stdout


def test_a_results_file_of_any_name(write_run: WriteRun, make: Make, vally: Vally) -> None:
    directory = write_run(*make.three_trials())
    (directory / "results.jsonl").rename(directory / "slice.jsonl")
    result = vally("show", str(directory / "slice.jsonl"))
    assert "2/3 trials passed" in result.stdout
    assert "Output directory" not in result.stdout


def test_the_results_directory_of_the_project(tmp_path: Path, write_run: WriteRun, make: Make, vally: Vally) -> None:
    write_run(*make.three_trials())
    (tmp_path / "vally-results").rename(tmp_path / "elsewhere")
    assert vally("show").exit_code == 1
    (tmp_path / ".vally.yaml").write_text("paths: {results: elsewhere}\n")
    assert "2/3 trials passed" in vally("show").stdout


def test_only_what_failed(write_run: WriteRun, make: Make, vally: Vally) -> None:
    error = trial_result("breaks", status="error", error="down", duration_ms=5)
    write_run(*make.three_trials(), trial_result("fine", make.said("ok")), error)
    shown = vally("show", "--failed").stdout
    assert "✘ FAIL  2/3 trials passed" in shown
    assert "⚠ ERROR  down" in shown
    assert "fine" not in shown.partition("Summary")[0]
    records = json.loads(vally("show", "--failed", "--output", "json").stdout)
    assert [(item["stimulus"], item["trialIndex"]) for item in records] == [("greets", 1), ("breaks", 0)]


def test_a_run_that_goes_on_or_was_killed(write_run: WriteRun, make: Make, vally: Vally) -> None:
    directory = write_run(*make.three_trials(), summary=None, tail=b'{"type": "trial-res')
    (directory / "run-manifest.json").write_text(json.dumps({"runId": "run-1", "items": ["a"] * 5}))
    result = vally("show")
    assert result.exit_code == 0
    assert "2/3 trials passed" in result.stdout
    assert "PARTIAL (incomplete)" in result.stdout
    assert "results.jsonl:4: not valid JSON" in result.stderr
    assert "[torn-record]" in result.stderr
    assert "3 of 5 planned trials are recorded" in result.stderr


def test_older_records(write_run: WriteRun, vally: Vally) -> None:
    directory = write_run(summary=None)
    grade = {"passed": True, "score": 1, "name": "g", "kind": "code", "evidence": "e"}
    legacy = {"status": "ok", "gradeResult": grade, "trajectory": {"stimulus": {"name": "old"}, "output": "hi"}}
    (directory / "results.jsonl").write_text(f"{json.dumps(legacy)}\n{json.dumps(legacy)}\n")
    assert "2/2 trials passed" in vally("show").stdout.replace("2/1", "2/2")
    assert "  hi\n" in vally("show", "--trial", "1").stdout


def test_an_experiment_shows_its_variants(write_run: WriteRun, make: Make, vally: Vally) -> None:
    directory = write_run(name="experiment")
    (directory / "results.jsonl").unlink()
    manifest = {"experiment": {"runId": "e1", "variantNames": ["skilled", "baseline", "unused"]}}
    (directory / "experiment-manifest.json").write_text(json.dumps(manifest))
    for variant in ("baseline", "skilled", "unused"):
        (directory / variant).mkdir()
        made = (
            b""
            if variant == "unused"
            else record_line(dump_record(trial_result("s", make.said("ok"), variant=variant)))
        )
        (directory / variant / "results.jsonl").write_bytes(made)
    shown = vally("show", "e1").stdout
    assert shown.index("── skilled ──") < shown.index("── baseline ──")
    assert "── unused ──" not in shown
    assert "s   baseline   default-model" in vally("show", "e1", "--variant", "baseline").stdout


def test_two_reporters_for_people_hide_no_trial(tmp_path: Path, write_run: WriteRun, make: Make) -> None:
    write_run(*make.three_trials())
    # Of two with one name neither is used.
    both = [ReporterSpec(name="console", summary=f"number {number}", factory="nowhere:x") for number in (1, 2)]
    result = run_cli(["show"], cwd=tmp_path, plugins=both)
    assert result.exit_code == 1
    assert "reporter 'console' is provided by" in result.stderr
    for words in (["--trial", "0"], ["--output", "json"]):
        assert run_cli(["show", *words], cwd=tmp_path, plugins=both).exit_code == 0


class Totals:
    """Shows how many trials a stored run has."""

    def on_run_complete(self, event: RunComplete) -> None:
        print(f"{event.summary.totals.trials} trials in all")


def test_a_plugin_may_show_stored_runs(tmp_path: Path, write_run: WriteRun, make: Make) -> None:
    write_run(*make.three_trials())
    able = ReporterSpec(name="totals", summary="totals", factory=Totals, order=1, shows_stored_runs=True)
    other = ReporterSpec(name="early", summary="nothing", factory=Totals, order=0)
    shown = run_cli(["show"], cwd=tmp_path, plugins=[other, able])
    assert (shown.exit_code, shown.stdout.splitlines()[0]) == (0, "3 trials in all")
