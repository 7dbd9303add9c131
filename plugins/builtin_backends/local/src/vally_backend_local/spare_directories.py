"""Empty directories of finished trials, kept for later ones."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

MODE = 0o700
LIMIT = 512


class SpareDirectories:
    """Gives the directories of trials that left nothing to later trials, under new names.

    Some file systems make a directory slowly when others were removed just before; two renames cost a third of that.
    Only directories that no process ever knew may be kept. They lie in `store`, on the same file system. To be used
    from one thread.
    """

    def __init__(self, store: Path) -> None:
        self._store = store
        self._spare: list[Path] = []
        self._number = 0

    def make(self, path: Path) -> None:
        """Make an empty directory that only its owner can read. Raises `OSError`."""
        if self._spare:
            with contextlib.suppress(OSError):
                self._spare.pop().rename(path)
                return
        path.mkdir(mode=MODE)

    def keep(self, path: Path) -> bool:
        """Keep a directory when it is as it was made; returns whether it was taken."""
        kept = self._store / f"spare-{self._number}"
        try:
            if len(self._spare) >= LIMIT or not _is_untouched(path):
                return False
            path.rename(kept)
        except OSError:
            return False
        self._number += 1
        self._spare.append(kept)
        return True

    def close(self) -> None:
        """Remove what is kept."""
        spare, self._spare = self._spare, []
        for path in spare:
            with contextlib.suppress(OSError):
                path.rmdir()


def _is_untouched(path: Path) -> bool:
    found = os.lstat(path)
    return (
        stat.S_ISDIR(found.st_mode)
        and stat.S_IMODE(found.st_mode) == MODE
        and next(path.iterdir(), None) is None
        and not (hasattr(os, "listxattr") and os.listxattr(path))
    )
