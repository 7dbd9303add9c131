"""Where the records of a run go that keeps none."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from vally.run.file_locks import lock_file
from vally.run.run_scratch import SCRATCH_LOCK, SCRATCH_PREFIX


@contextlib.contextmanager
def unrecorded_directory() -> Iterator[Path]:
    """A temporary directory, for as long as the context.

    Backends remove it when the run was killed.
    """
    with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX, ignore_cleanup_errors=True) as name:
        directory = Path(name).resolve()
        with (directory / SCRATCH_LOCK).open("ab") as lock:
            lock_file(lock, exclusive=False)
            yield directory
