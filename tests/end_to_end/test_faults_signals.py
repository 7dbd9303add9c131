"""Signals: the run ends as it should whatever it is doing, with one record per planned trial."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from programs import PLUGIN, check_closed, finish, records_of, run_dir, start, until, write_spec

REASONS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "terminated"}


def started(root: Path, *words: str, word: str = "wait", executor: str = "abad", **options: Any) -> Any:
    """A run whose first trials wait for the end."""
    write_spec(root, [word, "fine"], executor=executor)
    env = {"SEEN": str(root), **options.pop("env", {})}
    process = start(root, "--runs", "4", "--workers", "3", *words, env=env, **options)
    until(lambda: (root / "ready").exists() or process.poll() is not None)
    return process


@pytest.mark.parametrize("number", REASONS, ids=lambda number: number.name)
def test_the_first_signal_ends_the_run_with_a_record_for_every_item(tmp_path: Path, number: signal.Signals) -> None:
    process = started(tmp_path)
    until(lambda: len(list(tmp_path.glob("waits-*"))) == 3)
    process.send_signal(number)
    code, out, err = finish(process)
    assert code == 128 + number
    assert "stopping: waiting for 3 running trials (Ctrl-C again to abort)" in err
    assert "PARTIAL" in out
    records = records_of(tmp_path)
    summary = check_closed(records, 8)
    assert (summary["status"], summary["partial"], summary["passed"]) == ("cancelled", True, False)
    assert summary["stopReason"] == REASONS[number]
    assert {record["skipReason"] for record in records[:-1]} == {"cancelled"}
    assert not (run_dir(tmp_path) / ".lock").exists()


def test_a_hang_up_is_not_heard_under_nohup(tmp_path: Path) -> None:
    process = started(tmp_path, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 143


def test_a_thread_that_ignores_everything_is_left_behind(tmp_path: Path) -> None:
    write_spec(tmp_path, ["hang"])
    process = start(tmp_path, "--shutdown-timeout", "500ms")
    until(lambda: list(tmp_path.glob("out/*/results.jsonl")))
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    code, _, _ = finish(process, 30)
    assert code == 130
    assert check_closed(records_of(tmp_path), 1)["totals"]["skipped"] == 1


@pytest.mark.parametrize("number", REASONS, ids=lambda number: number.name)
def test_the_second_signal_ends_at_once_even_when_a_plugin_blocks_the_loop(
    tmp_path: Path, number: signal.Signals
) -> None:
    process = started(tmp_path, word="block")
    process.send_signal(number)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(number)
    code, _, err = finish(process, 10)
    assert code == 128 + number
    assert "aborted" in err


def test_the_first_signal_is_answered_at_once_even_when_a_plugin_blocks_the_loop(tmp_path: Path) -> None:
    with (tmp_path / "told.txt").open("wb") as told:
        process = started(tmp_path, word="block", stderr=told)
    process.send_signal(signal.SIGINT)
    until(lambda: b"stopping: waiting for" in (tmp_path / "told.txt").read_bytes())
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert finish(process, 10)[0] == 130


@pytest.mark.heavy
def test_a_loop_that_stays_blocked_is_ended_without_a_second_signal(tmp_path: Path) -> None:
    process = started(tmp_path, "--shutdown-timeout", "100ms", word="block")
    process.send_signal(signal.SIGTERM)
    code, _, err = finish(process, 60)
    assert code == 143
    assert "aborted" in err


def test_a_signal_while_plugins_finish_keeps_the_run_whole(tmp_path: Path) -> None:
    write_spec(tmp_path, ["fine"])
    env = {"BAD_REPORTER": "on_run_complete:hang"}
    process = start(tmp_path, "--reporter-plugin", str(PLUGIN), env=env)
    until(lambda: any(b'"run-summary"' in path.read_bytes() for path in tmp_path.glob("out/*/results.jsonl")))
    process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    code, _, err = finish(process, 10)
    assert code == 143
    assert "stopping: waiting for plugins to finish (Ctrl-C again to abort)" in err
    summary = check_closed(records_of(tmp_path), 1)
    assert (summary["status"], summary["partial"], summary["passed"]) == ("completed", False, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_before_the_run_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    write_spec(tmp_path, ["fine"])
    (tmp_path / "slow.py").write_text("import pathlib, time\npathlib.Path('ready').touch()\ntime.sleep(600)\n")
    process = start(tmp_path, "--grader-plugin", "./slow.py")
    until(lambda: (tmp_path / "ready").exists())
    process.send_signal(number)
    code, out, err = finish(process, 10)
    assert (code, out) == (128 + number, "")
    assert "error" not in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("number", REASONS, ids=lambda number: number.name)
def test_a_signal_between_the_directory_and_the_first_trial_leaves_a_closed_run(
    tmp_path: Path, number: signal.Signals
) -> None:
    write_spec(tmp_path, ["fine"])
    (tmp_path / "early.py").write_text(EARLY_REPORTER.format(number=int(number)))
    code, out, _ = finish(start(tmp_path, "--runs", "3", "--reporter-plugin", "./early.py"), 30)
    assert code == 128 + number
    assert f"PARTIAL ({REASONS[number]})" in out
    records = records_of(tmp_path)
    assert check_closed(records, 3)["stopReason"] == REASONS[number]
    assert {record["skipReason"] for record in records[:-1]} == {"cancelled"}
    assert not (run_dir(tmp_path) / ".lock").exists()


EARLY_REPORTER = """
import os
from vally import ReporterSpec

class Early:
    def __init__(self):
        os.kill(os.getpid(), {number})

EARLY = ReporterSpec(name="early", summary="Made before the first trial", factory=Early, order=90)
"""


def test_a_signal_while_the_backend_starts_takes_it_down(tmp_path: Path) -> None:
    write_spec(tmp_path, ["fine"])
    (tmp_path / "slow.py").write_text(SLOW_BACKEND)
    process = start(tmp_path, "--backend", "./slow.py")
    until(lambda: (tmp_path / "ready").exists())
    process.send_signal(signal.SIGTERM)
    assert finish(process, 10)[0] == 143
    assert (tmp_path / "down").exists()
    assert not (tmp_path / "out").exists()


SLOW_BACKEND = """
import asyncio, pathlib
from vally import BackendSpec, hookimpl

class Backend:
    async def prepare(self, *_):
        pathlib.Path("ready").touch()
        await asyncio.sleep(600)

    async def run_trial(self, *_): ...
    async def grade_trial(self, request): ...

    async def shutdown(self):
        pathlib.Path("down").touch()

@hookimpl
def vally_backends():
    yield BackendSpec(name="slow", summary="starts slowly", factory=Backend)
"""


def test_a_cancelled_trial_that_its_backend_does_not_end_is_given_up(tmp_path: Path) -> None:
    write_spec(tmp_path, ["fine"])
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import vally.run.attempts as a\na.BACKEND_GRACE_S = 0.3\n")
    names = {"prepare": "run_trial", "run_trial": "prepare"}
    (tmp_path / "slow.py").write_text(re.sub("prepare|run_trial", lambda match: names[match[0]], SLOW_BACKEND))
    words = ("--backend", "./slow.py", "--shutdown-timeout", "200ms")
    process = start(tmp_path, *words, env={"PYTHONPATH": str(site)})
    until(lambda: (tmp_path / "ready").exists() or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process, 20)
    assert code == 130, err
    records = records_of(tmp_path)
    check_closed(records, 1)
    assert records[0]["skipReason"] == "cancelled"
