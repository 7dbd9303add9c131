"""Everything one run writes: its directory, lock and results file, and how messages name them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from vally.model.jsonio import encode_document, encode_line, record_line
from vally.model.results import TrialResult, add_warnings, load_trial_result
from vally.run.limits import fit_trial_record
from vally.run.recorded_paths import with_relative_paths
from vally.run.recording import redacted_record, redacted_trial
from vally.run.results_file import ResultsFile
from vally.run.run_dir import RunDirectory

if TYPE_CHECKING:
    from vally.model.results import RunSummary
    from vally.run.redaction import Redactor
    from vally.run.trial import TrialItem


class RunOutput:
    """The files of a run that is going on; holds the lock of its directory until closed."""

    def __init__(self, directory: RunDirectory, redactor: Redactor, display: Callable[[Path], str]) -> None:
        self.directory = directory
        self.display_of = display
        self._redactor = redactor
        self._lock = directory.lock()
        self._lock.acquire()
        self._results = ResultsFile(directory.results_path)

    @classmethod
    def create(
        cls, parent: Path, redactor: Redactor, started_at: datetime, display: Callable[[Path], str]
    ) -> RunOutput:
        """Make a new run directory below `parent`; raises `VallyError` when that cannot be done."""
        return cls(RunDirectory.create(parent, started_at), redactor, display)

    @property
    def path(self) -> Path:
        """The run directory."""
        return self.directory.path

    @property
    def display(self) -> str:
        """The run directory as messages name it."""
        return self.display_of(self.path)

    @property
    def results_path(self) -> Path:
        """`results.jsonl`."""
        return self.directory.results_path

    def append(self, line: bytes) -> None:
        """Write one line to the disk; raises `ResultsWriteError`."""
        self._results.append(line)

    def trial_record(self, result: TrialResult, item: TrialItem) -> tuple[TrialResult, bytes]:
        """Redact and cut a result, write its side files, and return what reporters see with its line.

        A side file that cannot be written becomes a warning on the record; the line is what counts.
        """
        record = redacted_trial(result, self._redactor)
        trajectory = record.get("trajectory")
        if trajectory is not None:
            trajectory["stimulus"] = with_relative_paths(trajectory.get("stimulus") or {}, self.display_of)
        fitted = fit_trial_record(record, self.directory.sidecar(item.segments, "trajectory.json"))
        try:
            if fitted.full_trajectory is not None:
                document = encode_document(fitted.full_trajectory)
                self.directory.write_trial_file(item.segments, "trajectory.json", document)
            if result.attempts:
                self.directory.write_metadata(item.segments, result)
        except (OSError, ValueError) as error:
            # A ValueError is a name that the file system cannot have.
            reason = getattr(error, "strerror", None) or str(error)
            warned = add_warnings(fitted.record, [f"side file not written: {reason}"])
            return load_trial_result(warned), record_line(warned)
        return load_trial_result(fitted.record), fitted.line

    def console(self, text: str) -> str:
        """Text for people without secrets."""
        return self._redactor.console(text)

    def summary_line(self, summary: RunSummary) -> bytes:
        """The last line of the file."""
        return encode_line(redacted_record(summary, self._redactor))

    def close(self) -> None:
        """Close the file and release the lock."""
        self._results.close()
        self._lock.release()


def display_path(project_root: Path, cwd: Path) -> Callable[[Path], str]:
    """How messages name a path: relative to the project when below it, else to `cwd`, else absolute; POSIX."""

    def shown(path: Path) -> str:
        for base in (project_root, cwd):
            if path.is_relative_to(base):
                return path.relative_to(base).as_posix()
        return path.as_posix()

    return shown
