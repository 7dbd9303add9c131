"""Stored runs made by hand, and the program that looks at them."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from stored_runs import Make, RunWriter

from vally.testing import CliResult, run_cli


@pytest.fixture(scope="session", autouse=True)
def _heard_signals() -> None:
    """Programs under test inherit which signals are ignored, as `nohup` and a shell's background have it."""
    handlers = {"SIGHUP": signal.SIG_DFL, "SIGQUIT": signal.SIG_DFL, "SIGINT": signal.default_int_handler}
    for name, handler in handlers.items():
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture
def make() -> Make:
    """Results, grades and summaries of runs that never happened."""
    return Make()


@pytest.fixture
def write_run(tmp_path: Path) -> RunWriter:
    """Write a run directory below `vally-results`."""
    return RunWriter(tmp_path)


@pytest.fixture
def vally(tmp_path: Path) -> Callable[..., CliResult]:
    """Run the program in the directory above `vally-results`; nothing may end in a traceback."""

    def run(*args: str, env: dict[str, str] | None = None) -> CliResult:
        result = run_cli(args, cwd=tmp_path, env=env)
        assert "Traceback" not in result.stderr
        assert "internal error" not in result.stderr
        return result

    return run
