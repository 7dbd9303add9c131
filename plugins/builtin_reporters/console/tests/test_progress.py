"""Plain progress: a line per finished trial, starts and phases on request, and a heartbeat."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from vally import GraderResult, TrialResult
from vally.testing import PlayedRun, ScriptedRun, trial_result
from vally_reporter_console.reporter import ConsoleReporter

Play = Callable[..., PlayedRun]
Grader = Callable[..., GraderResult]
Trials = Callable[..., list[TrialResult]]


def test_one_line_per_finished_trial(play: Play, grader: Grader, trials: Trials) -> None:
    results = trials(
        "writes-json",
        [grader("a"), grader("b")],
        [grader("a"), grader("b", False), grader("c")],
        [grader("a", None), grader("b", None)],
        {"status": "error", "error": "the provider\nis down"},
        {"status": "skipped", "skip_reason": "fail-fast"},
        [],
        eval_name="config-eval",
        model="gpt-x",
        duration_ms=12_400,
    )
    assert play(*results, progress="plain").stderr.splitlines() == [
        "[1/6] ✔ config-eval / writes-json #1/6 (gpt-x)  12.4s",
        "[2/6] ✘ config-eval / writes-json #2/6 (gpt-x)  12.4s  1 of 3 graders failed",
        "[3/6] ⚠ config-eval / writes-json #3/6 (gpt-x)  12.4s  2 grader errors",
        "[4/6] ⚠ config-eval / writes-json #4/6 (gpt-x)  12.4s  the provider is down",
        "[5/6] ○ config-eval / writes-json #5/6 (gpt-x)  fail-fast",
        "[6/6] ○ config-eval / writes-json #6/6 (gpt-x)  12.4s  not graded",
    ]


def test_a_failure_that_no_single_grader_explains(play: Play, grader: Grader) -> None:
    weak = GraderResult.verdict(True, "half", score=0.5, name="g")
    played = play(trial_result("s", weak), threshold=0.9, progress="plain")
    assert played.stderr.endswith("  1.2s  score 0.50\n")


def test_a_long_error_is_cut_before_its_cause(play: Play) -> None:
    error = "e" * 4096 + ": the cause"
    played = play(trial_result("s", status="error", error=error), progress="plain")
    assert played.stderr.endswith(f"  {'e' * 66}…{'e' * 122}: the cause\n")
    assert error in played.stdout


def test_verbose_tells_of_starts_and_phases(play: Play, grader: Grader) -> None:
    played = play(trial_result("s", grader("g"), trial_index=1, total_trials=2), progress="plain", verbose=True)
    phases = ["started", "preparing", "running", "capturing", "grading"]
    lines = played.stderr.splitlines()
    assert lines[:5] == [f"[s#2] {phase}" for phase in phases]
    assert lines[5].startswith("[1/1] ✔ scripted / s #2/2 (default-model)")


def test_none_prints_nothing(play: Play, grader: Grader) -> None:
    assert play(trial_result("s", grader("g")), progress="none", verbose=True).stderr == ""


def test_live_without_a_terminal_is_plain(play: Play, grader: Grader) -> None:
    assert play(trial_result("s", grader("g")), progress="live").stderr.startswith("[1/1] ✔")


def heartbeats() -> int:
    return sum(thread.name == "vally-heartbeat" for thread in threading.enumerate())


def test_a_heartbeat_when_nothing_is_printed(tmp_path: Path, grader: Grader, trials: Trials) -> None:
    results = trials("writes-json", [grader("g")], [grader("g")], [grader("g")], eval_name="config-eval")
    events = list(ScriptedRun(tmp_path, results, progress="plain").events())
    reporter = ConsoleReporter(heartbeat_s=0.05)
    out, err = io.StringIO(), io.StringIO()
    before = heartbeats()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        for method, event in events:
            if method in ("on_run_start", "on_trial_start"):
                getattr(reporter, method)(event)
        assert heartbeats() == before + 1
        end = time.monotonic() + 30
        while err.getvalue().count("\n") < 2 and time.monotonic() < end:
            time.sleep(0.01)
        for method, event in events:
            if method in ("on_trial_result", "on_run_complete"):
                getattr(reporter, method)(event)
    line = "… 3 running, oldest config-eval / writes-json #1/3 for 0m00s"
    assert err.getvalue().splitlines()[:2] == [line, line]
    assert heartbeats() == before


def test_no_heartbeat_while_nothing_runs(tmp_path: Path, grader: Grader) -> None:
    events = list(ScriptedRun(tmp_path, [trial_result("s", grader("g"))], progress="plain").events())
    reporter = ConsoleReporter(heartbeat_s=0.01)
    err = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
        reporter.on_run_start(events[0][1])
        time.sleep(0.1)
        reporter.on_run_complete(events[-1][1])
    assert err.getvalue() == ""


@pytest.mark.parametrize("method", ["on_trial_result", "on_run_complete"])
def test_a_reporter_that_failed_leaves_no_thread(tmp_path: Path, grader: Grader, method: str) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    reporter, before = ConsoleReporter(), heartbeats()
    with contextlib.redirect_stdout(Closed()), contextlib.redirect_stderr(io.StringIO()):
        for name, event in ScriptedRun(tmp_path, [trial_result("s", grader("g"))], progress="plain").events():
            if name == method:
                with pytest.raises(BrokenPipeError):
                    getattr(reporter, name)(event)
                break
            if name == "on_run_start":
                reporter.on_run_start(event)
    assert heartbeats() == before
