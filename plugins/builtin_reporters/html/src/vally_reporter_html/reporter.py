"""Writes the report for browsers from the records of a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vally import atomic_write

if TYPE_CHECKING:
    from vally import RunComplete, RunStart

FILE_NAME = "eval-results.html"


class HtmlReporter:
    """Keeps nothing while the run goes on; trials are read back from their records."""

    def __init__(self) -> None:
        self._start: RunStart | None = None

    def on_run_start(self, event: RunStart) -> None:
        """Remember what the run is about."""
        self._start = event

    def on_run_complete(self, event: RunComplete) -> dict[str, Path]:
        """Write the report and name it."""
        from vally_reporter_html.document import document

        assert self._start is not None
        path = event.run_dir / FILE_NAME
        atomic_write(path, document(self._start, event.summary, event.run_dir))
        return {"HTML": path}
