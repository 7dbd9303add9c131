"""What this process was given, for programs of plugins that start without the command line, and for messages."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, MutableMapping
from contextvars import ContextVar
from pathlib import Path

_given: ContextVar[Mapping[str, str] | None] = ContextVar("vally-environment", default=None)


@contextlib.contextmanager
def given_environment(environ: Mapping[str, str]) -> Iterator[None]:
    """Let the body, its tasks and their worker threads work with this environment instead of the process's."""
    token = _given.set(environ)
    try:
        yield
    finally:
        _given.reset(token)


def current_environment() -> Mapping[str, str]:
    """The environment that the program at work was given, else that of this process."""
    given = _given.get()
    return os.environ if given is None else given


def own_environment() -> MutableMapping[str, str]:
    """The environment of this process."""
    return os.environ


def cache_directory(environ: Mapping[str, str], cwd: Path) -> Path:
    """Root of what may be deleted at any time: `VALLY_CACHE_DIR`, else the user's cache directory."""
    named = environ.get("VALLY_CACHE_DIR")
    if named:
        return cwd / named
    from platformdirs import user_cache_path

    return user_cache_path("vally", appauthor=False)
