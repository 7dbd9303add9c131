"""Machine output: the lines of `results.jsonl`, on stdout, the moment they are on disk."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vally import RunComplete, RunStart, TrialDone


class JsonlReporter:
    """Writes one line per finished trial and the run summary last; silent for other kinds of output."""

    def __init__(self) -> None:
        self._active = False

    def on_run_start(self, event: RunStart) -> None:
        """Find out whether the command was asked for JSON lines."""
        self._active = event.options.output == "jsonl"

    def on_trial_result(self, event: TrialDone) -> None:
        """Write the trial's line as it stands in the file."""
        self._write(event.line)

    def on_run_complete(self, event: RunComplete) -> None:
        """Write the summary's line."""
        self._write(event.line)

    def _write(self, line: bytes) -> None:
        if not self._active:
            return
        # The bytes of the record, whatever encoding and line ends the text layer of stdout would use.
        binary = getattr(sys.stdout, "buffer", None)
        if binary is not None:
            sys.stdout.flush()
            binary.write(line)
            binary.flush()
        else:
            sys.stdout.write(line.decode("utf-8"))
            sys.stdout.flush()
