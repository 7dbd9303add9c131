"""Odd plans: hostile names, very many items, nothing to grade; and the exit code of every way a run can come out."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from programs import SAYS_HELLO, check_closed, evaluate, finish, records_of, run_dir, start, write_spec

from vally import TrialSkipped
from vally.testing import CliResult, ScriptedExecutor

pytestmark = pytest.mark.heavy

NAMES = [
    "a/b",
    "a b",
    "../../etc/passwd",
    "..",
    ".",
    "a::b::trial-0",
    "x" * 200,
    "x" * 199 + "y",
    "😀 emoji 試験",
    "Case",
    "case",
    "CON",
    "-",
    "$(touch hacked)",
    "`id`; rm -rf x",
    "%s%n{0}",
    "con.txt",
    "\u202egnp.exe",
]


def test_hostile_names_stay_below_the_run_directory(tmp_path: Path) -> None:
    project = tmp_path / "project"
    stimuli = [{"name": name, "prompt": "fine", "graders": [SAYS_HELLO]} for name in NAMES]
    write_spec(project, stimuli, name="../project/eval.yaml")
    spec = json.loads((project / "eval.yaml").read_text())
    (project / "eval.yaml").write_text(json.dumps({**spec, "name": "../../evil::eval"}, ensure_ascii=False))
    result = evaluate(project, "--junit", "--verbose")
    assert result.exit_code == 0
    check_closed(result.records, len(NAMES))
    assert sorted(record["stimulus"] for record in result.records[:-1]) == sorted(NAMES)
    directory = run_dir(project)
    metadata = list(directory.rglob("metadata.json"))
    assert sorted(json.loads(path.read_text())["stimulusName"] for path in metadata) == sorted(NAMES)
    parts = [path.relative_to(directory).parts for path in metadata]
    assert len({tuple(part.casefold() for part in names) for names in parts}) == len(NAMES)
    assert all(len(names) == 5 and all(len(part.encode()) <= 255 for part in names) for names in parts)
    assert {path.name for path in tmp_path.iterdir()} == {"project"}
    assert {path.name for path in project.iterdir()} == {"eval.yaml", "out"}


def test_ten_thousand_items_are_planned_quickly_and_in_little_memory(tmp_path: Path) -> None:
    stimuli = [{"name": f"s{number}", "prompt": "p", "graders": [{"type": "completed"}]} for number in range(100)]
    write_spec(tmp_path, stimuli, executor="mock")
    peaks, seconds = {}, 0.0
    for runs in (1, 100):
        with (tmp_path / "plan").open("wb") as plan:
            process = start(tmp_path, "--runs", str(runs), "--dry-run", "--output", "json", stdout=plan)
        began = time.monotonic()
        peak = 0
        while process.poll() is None:
            peak = max(peak, resident_bytes(process.pid))
            time.sleep(0.01)
        seconds = time.monotonic() - began
        assert finish(process)[0] == 0
        peaks[runs] = peak
    assert len(json.loads((tmp_path / "plan").read_text())["items"]) == 10_000
    # The start of the program is part of it, and the machine may be busy.
    assert seconds < 30
    assert peaks[100] - peaks[1] < 50 * 2**20, peaks


def resident_bytes(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


@pytest.mark.parametrize(
    ("words", "graders"),
    [((), []), (("--skip-grade",), [SAYS_HELLO]), (("--skip-grade",), []), (("--threshold", "0.5"), [])],
    ids=["no-graders", "skip-grade", "both", "threshold"],
)
def test_nothing_to_grade_is_a_pass_without_a_score(tmp_path: Path, words: tuple[str, ...], graders: list[Any]) -> None:
    write_spec(tmp_path, [{"name": "s", "prompt": "fine", "graders": graders}])
    result = evaluate(tmp_path, *words, "--junit")
    assert result.exit_code == 0
    summary = check_closed(result.records, 1)
    assert (summary["passed"], summary["totals"]["passed"]) == (True, 0)
    assert result.records[0]["gradeResult"] is None
    assert "overallScore" not in summary["evals"][0]


@pytest.mark.parametrize("words", [("--runs", "0"), ("--stimulus", "none", "--allow-empty")])
def test_a_run_of_nothing_has_a_document_and_did_not_pass(tmp_path: Path, words: tuple[str, ...]) -> None:
    write_spec(tmp_path, [{"name": "s", "prompt": "fine", "graders": [SAYS_HELLO]}])
    result = evaluate(tmp_path, *words, "--require-pass", "--output", "json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert (document["type"], document["passed"], document["runDir"]) == ("eval-run", False, None)
    assert (document["evals"], document["totals"]["trials"], document["exitCode"]) == ([], 0, 0)
    planned = evaluate(tmp_path, *words, "--dry-run", "--output", "json")
    assert json.loads(planned.stdout)["items"] == []
    assert evaluate(tmp_path, *words, "--dry-run").stdout.startswith("Plan: 0 evals, 0 items\n")


def test_nothing_to_grade_and_an_error_is_no_pass(tmp_path: Path) -> None:
    write_spec(tmp_path, [{"name": "s", "prompt": "raise"}])
    for words in ((), ("--skip-grade",)):
        result = evaluate(tmp_path, *words)
        assert result.exit_code == 1
        assert result.records[-1]["passed"] is False


ADVISORY = {"type": "bad", "config": {"do": "raise"}, "required": False, "weight": 0}
NEVER = {"type": "output-contains", "config": {"substring": "never said"}}
EMPTY = {"type": "output-contains", "config": {"substring": "hello"}}
EXITS: dict[str, tuple[str, list[Any], tuple[str, ...], int]] = {
    "pass": ("fine", [SAYS_HELLO], (), 0),
    "pass-required": ("fine", [SAYS_HELLO], ("--require-pass",), 0),
    "fail": ("fine", [NEVER], (), 0),
    "fail-required": ("fine", [NEVER], ("--require-pass",), 1),
    "below-threshold": ("fine", [SAYS_HELLO, NEVER], ("--require-pass", "--threshold", "0.9"), 1),
    "at-threshold": ("fine", [SAYS_HELLO, NEVER], ("--require-pass", "--threshold", "0.5"), 0),
    "trial-error": ("raise", [SAYS_HELLO], (), 1),
    "grader-error": ("fine", [{"type": "bad", "config": {"do": "raise"}}], (), 1),
    "advisory-grader-error": ("fine", [SAYS_HELLO, ADVISORY], (), 1),
    "fail-fast": ("fine", [NEVER], ("--fail-fast", "--runs", "4", "--workers", "1"), 1),
    "nothing-selected": ("fine", [SAYS_HELLO], ("--stimulus", "none"), 1),
    "nothing-selected-allowed": ("fine", [SAYS_HELLO], ("--stimulus", "none", "--allow-empty"), 0),
    "no-runs": ("fine", [SAYS_HELLO], ("--runs", "0"), 0),
    "unknown-grader": ("fine", [{"type": "unknown-thing"}], (), 1),
    "unknown-executor": ("fine", [SAYS_HELLO], ("--executor", "unknown"), 1),
    "unknown-option": ("fine", [SAYS_HELLO], ("--unknown",), 2),
    "combination": ("fine", [SAYS_HELLO], ("--skip-grade", "--require-pass"), 2),
}


@pytest.mark.parametrize("case", EXITS)
def test_the_exit_code_says_how_it_came_out(tmp_path: Path, case: str) -> None:
    prompt, graders, words, code = EXITS[case]
    write_spec(tmp_path, [{"name": "s", "prompt": prompt, "graders": graders}])
    result = evaluate(tmp_path, *words)
    assert result.exit_code == code, result.stderr
    if result.records:
        summary = result.records[-1]
        # A partial run never exits 0, and no error ever does.
        assert not (code == 0 and (summary["partial"] or summary["hadExecutionErrors"]))
        check_closed(result.records, result.records[0]["totalTrials"])


def test_what_an_executor_skips_is_not_partial(tmp_path: Path) -> None:
    write_spec(tmp_path, ["fine", "skip"], executor="scripted")
    scripted = ScriptedExecutor({"fine": ["hello"], "skip": [TrialSkipped("not on this machine")]})
    result = evaluate(tmp_path, "--require-pass", plugins=[scripted.record()])
    assert result.exit_code == 0
    summary = check_closed(result.records, 2)
    assert (summary["partial"], summary["passed"], summary["totals"]["skipped"]) == (False, True, 1)
    skipped = next(record for record in result.records if record.get("status") == "skipped")
    assert skipped["skipReason"] == "not on this machine"


def test_a_retry_that_the_end_of_a_run_forestalls_keeps_the_error(tmp_path: Path) -> None:
    from vally import ExecutorError

    write_spec(tmp_path, ["lost", "fail"], executor="scripted")
    error = ExecutorError("connection lost", code="session-lost", retryable=True)
    scripted = ScriptedExecutor({"lost": [error], "fail": ["nothing"]})
    result = evaluate(tmp_path, "--max-retries", "3", "--fail-fast", "--workers", "2", plugins=[scripted.record()])
    assert result.exit_code == 1
    found = {record["stimulus"]: record for record in result.records[:-1]}
    assert (found["lost"]["status"], found["lost"]["error"]) == ("error", "connection lost")
    assert found["lost"]["attempts"] == 1


def test_a_project_file_with_errors_is_named_with_its_place(tmp_path: Path) -> None:
    write_spec(tmp_path, ["fine"])
    (tmp_path / ".vally.yaml").write_text("suites: 7\n")
    result: CliResult = evaluate(tmp_path)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: .vally.yaml:1:")


def test_a_run_of_nothing_leaves_no_directory(tmp_path: Path) -> None:
    write_spec(tmp_path, ["fine"])
    code, out, err = finish(start(tmp_path, "--runs", "0", "--output", "jsonl"))
    assert (code, out) == (0, "")
    assert "skipped (runs: 0)" in err
    assert not (tmp_path / "out").exists()


def test_more_workers_than_threads_of_the_event_loop(tmp_path: Path) -> None:
    """Sync executors that hang must not keep the records of others from being written."""
    stimuli = [{"name": f"hang{number}", "prompt": "hang"} for number in range(45)]
    write_spec(tmp_path, [*stimuli, "fine"])
    process = start(tmp_path, "--workers", "60", "--shutdown-timeout", "300ms")
    end = time.monotonic() + 30
    path = None
    while path is None or b"trial-result" not in path.read_bytes():
        assert time.monotonic() < end, "the record waits for threads that hang"
        time.sleep(0.05)
        path = next(iter(tmp_path.glob("out/*/results.jsonl")), None)
    process.terminate()
    assert finish(process)[0] == 143
    check_closed(records_of(tmp_path), 46)
