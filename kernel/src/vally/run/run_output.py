"""Everything one run writes: its directory, lock and results files, and how messages name them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
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
from vally.run.shown_items import ShownItems

if TYPE_CHECKING:
    from vally.model.results import RunSummary
    from vally.run.redaction import Redactor
    from vally.run.trial import TrialItem


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLayout:
    """Where a run writes: a directory below `parent`, named `name` or by the start time.

    `parts` are directories below it that get a results file of their own whether or not an item names them.
    """

    parent: Path
    name: str | None = None
    parts: tuple[str, ...] = ()


class RunOutput:
    """The files of a run that is going on; holds the lock of its directory until closed.

    `parts` are the directories below the run directory that hold a results file each; an empty name stands for the
    run directory itself. `warnings` tell what was odd about the directory.
    """

    def __init__(
        self,
        directory: RunDirectory,
        redactor: Redactor,
        display: Callable[[Path], str],
        parts: Iterable[str] = ("",),
    ) -> None:
        self.directory = directory
        self.display_of = display
        self._redactor = redactor
        self._shown_items = ShownItems(redactor)
        self.parts = {part: RunDirectory(directory.path / part) for part in parts}
        self._lock = directory.lock(display)
        warning = self._lock.acquire()
        self.warnings = [] if warning is None else [warning]
        self._results: dict[str, ResultsFile] = {}

    @classmethod
    def create(
        cls,
        layout: RunLayout,
        redactor: Redactor,
        started_at: datetime,
        display: Callable[[Path], str],
        parts: Iterable[str] = ("",),
    ) -> RunOutput:
        """Make a new run directory; raises `VallyError` when that cannot be done."""
        if layout.name is None:
            directory = RunDirectory.create(layout.parent, started_at, display)
        else:
            directory = RunDirectory.named(layout.parent, layout.name, display)
        output = cls(directory, redactor, display, dict.fromkeys([*parts, *layout.parts]))
        output.open()
        return output

    def open(self) -> None:
        """Open the results files for appending. Raises `VallyError`; the lock is free then."""
        try:
            for part, directory in self.parts.items():
                directory.make()
                self._results[part] = ResultsFile(directory.results_path, self.display_of)
        except BaseException:
            self.close()
            raise

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
        """`results.jsonl` of a run that has one."""
        return self.directory.results_path

    def of(self, item: TrialItem) -> RunDirectory:
        """The directory with the records of an item."""
        return self.parts[item.part]

    def append(self, line: bytes, part: str = "") -> None:
        """Write one line to the disk; raises `ResultsWriteError`."""
        self._results[part].append(line)

    def trial_record(self, result: TrialResult, item: TrialItem) -> tuple[TrialResult, bytes]:
        """Redact and cut a result, write its side files, and return what reporters see with its line.

        A side file that cannot be written becomes a warning on the record; the line is what counts.
        """
        record = redacted_trial(result, self._redactor)
        trajectory = record.get("trajectory")
        if trajectory is not None:
            trajectory["stimulus"] = with_relative_paths(trajectory.get("stimulus") or {}, self.display_of)
        directory = self.of(item)
        fitted = fit_trial_record(record, directory.sidecar(item.segments, "trajectory.json"))
        try:
            if fitted.full_trajectory is not None:
                document = encode_document(fitted.full_trajectory)
                directory.write_trial_file(item.segments, "trajectory.json", document)
            if result.attempts:
                directory.write_metadata(item.segments, result)
        except (OSError, ValueError) as error:
            # A ValueError is a name that the file system cannot have.
            reason = getattr(error, "strerror", None) or str(error)
            warned = add_warnings(fitted.record, [f"side file not written: {reason}"])
            return load_trial_result(warned), record_line(warned)
        return load_trial_result(fitted.record), fitted.line

    def shown_item(self, item: TrialItem) -> TrialItem:
        """An item as reporters see it."""
        return self._shown_items.of(item)

    def console(self, text: str) -> str:
        """Text for people without secrets."""
        return self._redactor.console(text)

    def summary_line(self, summary: RunSummary) -> bytes:
        """The last line of a results file."""
        return encode_line(redacted_record(summary, self._redactor))

    def close(self) -> None:
        """Close the files and release the lock."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._lock.release)
            for results in self._results.values():
                stack.callback(results.close)


def display_path(project_root: Path, cwd: Path) -> Callable[[Path], str]:
    """How messages name a path: relative to the project when below it, else to `cwd`, else absolute; POSIX."""

    def shown(path: Path) -> str:
        # With `..` in it a path only looks as if it were below another.
        if ".." in path.parts:
            path = path.resolve()
        for base in (project_root, cwd):
            if path.is_relative_to(base):
                return path.relative_to(base).as_posix()
        return path.as_posix()

    return shown
