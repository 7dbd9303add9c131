"""Writes `eval-results.junit.xml` from the records of a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vally import atomic_write

if TYPE_CHECKING:
    from vally import RunComplete, RunStart

FILE_NAME = "eval-results.junit.xml"
OPTION = "junit"
_PIECE = 1 << 16


class JunitReporter:
    """Keeps nothing while the run goes on; one test suite per eval and model, one test case per trial."""

    def __init__(self) -> None:
        self._start: RunStart | None = None

    def on_run_start(self, event: RunStart) -> None:
        """Remember what the run is about."""
        self._start = event

    def on_run_complete(self, event: RunComplete) -> dict[str, Path]:
        """Write the report and name it."""
        from vally_reporter_junit.document import document

        assert self._start is not None
        path = event.run_dir / FILE_NAME
        atomic_write(path, document(self._start, event.summary, event.run_dir / "results.jsonl"))
        return {"JUnit": path, **self._copy(path)}

    def _copy(self, path: Path) -> dict[str, Path]:
        """Write the copy that an older spelling of the option asks for."""
        assert self._start is not None
        named = self._start.options.flags.get(OPTION)
        if not isinstance(named, str):
            return {}
        copy = Path(named)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as file:
            atomic_write(copy, iter(lambda: file.read(_PIECE), b""))
        return {"JUnit copy": copy}
