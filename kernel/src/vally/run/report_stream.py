"""Telling the output of reporters from what other plugins print: with machine output only reporters may use stdout."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

_REPORTING = contextvars.ContextVar("vally-reporting", default=False)


def is_reporting() -> bool:
    """Whether the code that runs now, in this task or thread, writes the report."""
    return _REPORTING.get()


@contextlib.contextmanager
def reporting() -> Iterator[None]:
    """What is written to stdout in the body is the report."""
    token = _REPORTING.set(True)
    try:
        yield
    finally:
        _REPORTING.reset(token)
