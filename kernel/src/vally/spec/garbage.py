"""Looking for garbage, which Python does while files are read as well."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collections() -> Iterator[None]:
    """Have Python look for no garbage while the body runs, for a body that makes little; also a decorator.

    A spec is many small objects that all live until it is checked. Looking at them again and again finds nothing, and
    doubles the time: see `tests/benchmarks/test_lint_speed.py`.
    """
    if not gc.isenabled():
        yield  # Perhaps another thread reads, and will switch it on again.
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
