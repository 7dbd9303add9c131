"""Where the records of a run go that keeps none."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from vally.run.file_locks import lock_file

PREFIX = "vally-run-"


@contextlib.contextmanager
def unrecorded_directory() -> Iterator[Path]:
    """A temporary directory, for as long as the context.

    Backends remove old directories of this name, which killed runs left: those in which nobody locks the file `lock`.
    """
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as name:
        directory = Path(name).resolve()
        with (directory / "lock").open("ab") as lock:
            lock_file(lock, exclusive=False)
            yield directory
