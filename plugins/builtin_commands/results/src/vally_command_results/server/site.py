"""What a server serves: a store, and the directories it is filled from."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from vally import __version__
from vally_command_results.importing.finding import RESULTS_NAME
from vally_command_results.importing.importer import ImportOptions
from vally_command_results.importing.session import ImportSummary, import_directories
from vally_command_results.store.opening import Store
from vally_command_results.store.versions import head_version

RESCAN_S = 2.0
Mode = Literal["directory", "store", "directory+store"]


@dataclass(slots=True)
class Site:
    """A store and how it is kept up; methods may be called by several threads.

    `directories` are read again when asked after two seconds; without any the store is left as it is.
    """

    store: Store
    mode: Mode
    directories: Sequence[tuple[Path, str]] = ()
    clock: Callable[[], float] = time.monotonic
    version: str = __version__
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _scanned: float = float("-inf")
    _seen: frozenset[tuple[str, int, int]] = frozenset()

    @property
    def schema_version(self) -> str:
        """The version of the tables."""
        return head_version()

    def refresh(self) -> ImportSummary | None:
        """Import what is new or changed, unless that was looked at a moment ago or is being done already."""
        if not self.directories or self.clock() - self._scanned < RESCAN_S or not self._lock.acquire(blocking=False):
            return None
        try:
            found = frozenset(_stamps(self.directories))
            self._scanned = self.clock()
            if found == self._seen:
                return None
            summary = import_directories(self.store, self.directories, ImportOptions())
            self._seen = found
            return summary
        finally:
            self._lock.release()

    def run_directory(self, source: str) -> Path | None:
        """The directory of a run while this server reads directories; None for a store alone, or when it is gone."""
        for root, name in self.directories:
            rest = source.removeprefix(f"{name}/") if source != name else ""
            if source == name or source.startswith(f"{name}/") or name == ".":
                path = root / rest
                if (path / RESULTS_NAME).is_file():
                    return path
        return None


def _stamps(directories: Sequence[tuple[Path, str]]) -> list[tuple[str, int, int]]:
    """Path, time and size of every file that an import reads."""
    found: list[tuple[str, int, int]] = []
    for root, _ in directories:
        paths = (path for path in root.rglob("*.json*") if path.suffix in (".json", ".jsonl"))
        stamped = ((path, status) for path in paths if (status := _status(path)) is not None)
        found += [(str(path), status.st_mtime_ns, status.st_size) for path, status in stamped]
    return found


def _status(path: Path) -> Any:
    try:
        return path.stat()
    except OSError:
        return None
