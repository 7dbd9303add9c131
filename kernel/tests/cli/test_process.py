"""Signals that end the program at whatever moment they come."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

DYING = """
import os, time
from vally.cli.process import interrupted_code, prepare_process

class Dying:
    def __del__(self):
        os.kill(os.getpid(), {number})
        sum(range(1000))

prepare_process()
try:
    Dying()
    time.sleep(60)
except KeyboardInterrupt as error:
    print(interrupted_code(error))
"""

SLOW_HOOK = """
import threading, time
from vally.cli import process

start = threading.Thread.start

def slow_start(thread):
    start(thread)
    time.sleep(0.3)

threading.Thread.start = slow_start
process.AGAIN_S = 0.001
"""

OTHER = """
from vally.cli.process import prepare_process

class Dying:
    def __del__(self):
        raise ValueError("told as ever")

prepare_process()
Dying()
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_while_an_object_is_destroyed_is_not_lost(number: signal.Signals) -> None:
    done = run(DYING.format(number=int(number)))
    assert (done.stdout, done.stderr) == (f"{128 + number}\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_it_is_not_lost_either_while_it_is_about_to_be_sent_again(number: signal.Signals) -> None:
    done = run(SLOW_HOOK + DYING.format(number=int(number)))
    assert (done.stdout, done.stderr) == (f"{128 + number}\n", "")


def test_other_errors_of_destruction_are_told() -> None:
    done = run(OTHER)
    assert done.returncode == 0
    assert "told as ever" in done.stderr
