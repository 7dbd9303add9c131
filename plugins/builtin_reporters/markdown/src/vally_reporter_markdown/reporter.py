"""Writes `eval-results.md` from the records of a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vally import atomic_write

if TYPE_CHECKING:
    from vally import RunComplete, RunStart

FILE_NAME = "eval-results.md"


class MarkdownReporter:
    """Keeps nothing while the run goes on; trials are read back from `results.jsonl`."""

    def __init__(self) -> None:
        self._start: RunStart | None = None

    def on_run_start(self, event: RunStart) -> None:
        """Remember what the run is about."""
        self._start = event

    def on_run_complete(self, event: RunComplete) -> dict[str, Path]:
        """Write the report and name it; a run whose variants have directories of their own has another report."""
        from vally_reporter_markdown.report import report_lines

        assert self._start is not None
        if self._start.variant_dirs:
            return {}
        path = event.run_dir / FILE_NAME
        lines = report_lines(self._start, event.summary, event.run_dir / "results.jsonl")
        atomic_write(path, (f"{line}\n" for line in lines))
        return {"Markdown": path}
