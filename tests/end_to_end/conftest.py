"""Stored runs made by hand, and the program that looks at them."""

from __future__ import annotations

import signal

import pytest
from run_fixtures import make, vally, write_run

__all__ = ["make", "vally", "write_run"]


@pytest.fixture(scope="session", autouse=True)
def _heard_signals() -> None:
    """Programs under test inherit which signals are ignored, as `nohup` and a shell's background have it."""
    handlers = {"SIGHUP": signal.SIG_DFL, "SIGQUIT": signal.SIG_DFL, "SIGINT": signal.default_int_handler}
    for name, handler in handlers.items():
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
