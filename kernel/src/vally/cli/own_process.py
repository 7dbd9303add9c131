"""What this process was given, for programs of plugins that start without the command line."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path


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
