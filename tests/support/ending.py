"""Processes that a test has seen, and that must be over."""

from __future__ import annotations

import contextlib

import psutil


def ends(pid: int, seconds: float = 60) -> None:
    """Wait until a process that is no child has ended; raises `psutil.TimeoutExpired`.

    It was told to end by one that is gone, so nobody here says when the system has got round to it.
    """
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(pid).wait(seconds)
