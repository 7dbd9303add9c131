"""Where the report and the progress go, and how one piece is written without another in its midst."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vally import fit_glyphs, inert_line, is_terminal, report_block, report_width

if TYPE_CHECKING:
    from vally import RunOptions


class Output:
    """Writes blocks of the report and lines of progress; methods may be called from several threads.

    The report goes to stdout, or to stderr when stdout carries machine output. Streams are looked up when something is
    written, because a live display replaces `sys.stderr` while it is on.
    """

    def __init__(self, options: RunOptions, environ: Mapping[str, str]) -> None:
        self._report_on_stderr = options.output != "text"
        self._environ = environ
        self.lock = threading.RLock()
        self.color = options.color_stderr if self._report_on_stderr else options.color_stdout

    @property
    def _report(self) -> Any:
        return sys.stderr if self._report_on_stderr else sys.stdout

    def block(self, text: str) -> None:
        """Write a block of the report, all at once. Raises `OSError` when stdout cannot be written."""
        text = report_block(text, self._environ)
        if self._report_on_stderr:
            self._tell(text)
        else:
            self._write(sys.stdout, text)

    def line(self, text: str) -> None:
        """Write one line of progress to stderr."""
        self._tell(f"{inert_line(text, self._environ)}\n")

    def _tell(self, text: str) -> None:
        # Without a reader of stderr the run goes on; only a closed stdout ends it.
        with contextlib.suppress(OSError, ValueError):
            self._write(sys.stderr, text)

    def _write(self, stream: Any, text: str) -> None:
        with self.lock:
            stream.write(fit_glyphs(text, stream))
            stream.flush()

    def is_terminal(self) -> bool:
        """Whether the report is read on a terminal."""
        return is_terminal(self._report)

    def width(self) -> int:
        """Columns of the report: those of its terminal, else `COLUMNS`, else 100."""
        return report_width(self._report, self._environ)
