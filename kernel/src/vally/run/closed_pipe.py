"""Whether anybody still reads what is written to a stream."""

from __future__ import annotations

import select
import sys
from typing import Any

from vally.run.report_stream import reporting


def is_closed(stream: Any) -> bool:
    """Whether the reader of a pipe or socket is gone; where the system cannot tell, whether a flush says so."""
    try:
        descriptor = stream.fileno()
    except (AttributeError, OSError, ValueError):
        descriptor = None
    if descriptor is not None and hasattr(select, "poll"):
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        return any(state & (select.POLLERR | select.POLLHUP) for _, state in poll.poll(0))
    return _flush_fails(stream)


def report_is_unread() -> bool:
    """Whether the reader of the report on stdout is gone."""
    with reporting():
        return is_closed(sys.stdout)


def _flush_fails(stream: Any) -> bool:
    try:
        stream.flush()
    except OSError:
        return True
    except (AttributeError, ValueError):
        return False
    return False
