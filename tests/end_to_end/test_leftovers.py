"""No process of an agent outlives its trial, however the run ends."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vally.processes import find_marked
from vally.testing import run_cli

# Leaves a process by each way out of its group, tells that it is there, and then does as it is told.
AGENT = """#!/bin/sh
trap 'echo INT >> "$SEEN/signals"' INT
setsid sleep 600 >/dev/null 2>&1 &
nohup sleep 600 >/dev/null 2>&1 &
( ( setsid sleep 600 >/dev/null 2>&1 & ) & )
while [ "$(ls "$SEEN" | grep -c ready)" = 0 ]; do sleep 0.1; touch "$SEEN/ready"; done
echo started
"""


class Case:
    """One spec with an agent that leaves processes, and the mark by which they are known."""

    def __init__(self, root: Path, then: str) -> None:
        self.root = root
        self.mark = str(uuid.uuid4())
        self.seen = root / "seen"
        self.seen.mkdir()
        script = root / "agent.sh"
        script.write_text(f"{AGENT}{then}\n")
        script.chmod(0o755)
        config = {"command": [str(script)], "env": {"SEEN": str(self.seen), "RUN_MARK": self.mark}}
        spec: dict[str, Any] = {
            "name": "leftovers",
            "defaults": {"executor": {"name": "command", "config": config}, "timeout": "60s"},
            "stimuli": [{"name": "s", "prompt": "p"}],
        }
        (root / "eval.yaml").write_text(json.dumps(spec))

    @property
    def left(self) -> list[object]:
        return list(find_marked(None, [("RUN_MARK", self.mark)]))

    @property
    def signals(self) -> list[str]:
        path = self.seen / "signals"
        return path.read_text().split() if path.exists() else []

    def start(self, **options: Any) -> subprocess.Popen[bytes]:
        """Start the program, and wait until its agent has left its processes."""
        command = [sys.executable, "-m", "vally", "eval", "-e", "eval.yaml", "--shutdown-timeout", "5s"]
        vally = subprocess.Popen(
            command,
            cwd=self.root,
            env={"PATH": os.environ["PATH"], "HOME": str(self.root), "VALLY_CACHE_DIR": str(self.root / "cache")},
            **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options},
        )
        until(lambda: (self.seen / "ready").exists() and len(self.left) >= 4, 30)
        return vally


def until(condition: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@pytest.fixture
def case(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Case]:
    made = Case(tmp_path, getattr(request, "param", "sleep 600"))
    yield made
    until(lambda: not made.left, 5)


@pytest.mark.parametrize("case", ["exit 0", "exit 3"], indirect=True)
def test_nothing_is_left_after_a_trial(case: Case) -> None:
    result = run_cli(["eval", "-e", "eval.yaml"], cwd=case.root)
    assert [record["status"] for record in result.records[:1]] == ["success"]
    assert case.left == []


def test_a_timeout_ends_the_command_of_the_agent(case: Case) -> None:
    """The agent sleeps for 600 s; after the limit of one second the trial returns within two."""
    result = run_cli(["eval", "-e", "eval.yaml", "--timeout", "1s"], cwd=case.root)
    record = result.records[0]
    assert record["trajectory"]["endReason"] == "agent_timeout"
    assert record["trajectory"]["output"] == "started\n"
    assert record["phases"]["agentMs"] < 1000 + 10_000
    assert case.left == []


def test_ctrl_c_ends_everything(case: Case) -> None:
    vally = case.start()
    vally.send_signal(signal.SIGINT)
    vally.wait(timeout=30)
    assert case.left == []


@pytest.mark.parametrize("case", ["trap '' TERM; while :; do sleep 0.1; done"], indirect=True)
def test_a_second_ctrl_c_ends_everything_too(case: Case) -> None:
    vally = case.start()
    vally.send_signal(signal.SIGINT)
    time.sleep(0.3)
    vally.send_signal(signal.SIGINT)
    vally.wait(timeout=30)
    until(lambda: not case.left, 5)


def test_the_death_of_vally_ends_everything_within_five_seconds(case: Case) -> None:
    vally = case.start()
    vally.kill()
    vally.wait()
    until(lambda: not case.left, 5)


def test_ctrl_c_in_a_terminal_reaches_vally_alone(case: Case) -> None:
    controller, terminal = pty.openpty()
    try:
        vally = case.start(stdin=terminal, stdout=terminal, stderr=terminal, preexec_fn=_take_terminal)
        os.close(terminal)
        os.write(controller, b"\x03")
        _drain(controller, vally)
        assert case.signals == []
        assert case.left == []
    finally:
        os.close(controller)


def _take_terminal() -> None:
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _drain(controller: int, vally: subprocess.Popen[bytes]) -> None:
    """Read what the program prints, so that it never waits for its terminal, until it has ended."""
    os.set_blocking(controller, False)

    def ended() -> bool:
        with contextlib.suppress(OSError):
            os.read(controller, 65536)
        return vally.poll() is not None

    until(ended, 30)
