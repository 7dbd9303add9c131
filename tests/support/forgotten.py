"""Packages that a test may import although another test in the same process has imported one of the same name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def forgotten(*packages: str) -> Iterator[None]:
    """Inside nothing of these packages is imported; afterwards what was there before is there again."""
    path, before = list(sys.path), _taken(packages)
    try:
        yield
    finally:
        _taken(packages)
        sys.modules.update(before)
        sys.path[:] = path


def _taken(packages: tuple[str, ...]) -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.partition(".")[0] in packages]
    return {name: sys.modules.pop(name) for name in names}
