"""Progress of a run; here as plain lines, for logs and for people who want them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vally import clock, cut_middle, elapsed, one_line, plural, two_decimals
from vally_reporter_console.figures import Figures, TrialLabel

if TYPE_CHECKING:
    from vally import TrialDone, TrialItem
    from vally_reporter_console.output import Output

HEARTBEAT_S = 60.0
REASON_LIMIT = 200
"""Characters of an error text in a line of progress; the card shows it whole."""


@dataclass(slots=True)
class RunningTrial:
    """A trial under way."""

    label: TrialLabel
    started: float
    phase: str = "preparing"


class Progress:
    """Follows the trials and shows nothing. A display may use its own thread, so everything happens under a lock."""

    def __init__(self) -> None:
        self.figures = Figures()
        self.running: dict[str, RunningTrial] = {}
        self.lock = threading.RLock()

    def start(self, total: int) -> None:
        """The run begins."""
        self.figures.total = total

    def trial_started(self, item: TrialItem) -> None:
        """A trial begins."""
        with self.lock:
            self.running[item.item_id] = RunningTrial(TrialLabel.of(item), time.monotonic())

    def phase(self, item_id: str, phase: str, detail: str | None) -> None:
        """A trial enters a phase."""
        with self.lock:
            if item_id in self.running:
                self.running[item_id].phase = phase

    def trial_done(self, event: TrialDone) -> None:
        """A trial has its record."""
        with self.lock:
            self.running.pop(event.item.item_id, None)
            self.figures.add(event)

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Keep progress away while a block of the report is written."""
        yield

    def stop(self) -> None:
        """The run is over, or nothing more can be shown."""


class PlainProgress(Progress):
    """One line per finished trial, with `--verbose` per start and phase too, and a heartbeat when nothing happens."""

    def __init__(self, output: Output, *, verbose: bool = False, heartbeat_s: float = HEARTBEAT_S) -> None:
        super().__init__()
        self._output = output
        self._verbose = verbose
        self._heartbeat_s = heartbeat_s
        self._last = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="vally-heartbeat", daemon=True)

    def start(self, total: int) -> None:
        super().start(total)
        self._thread.start()

    def trial_started(self, item: TrialItem) -> None:
        super().trial_started(item)
        if self._verbose:
            self._line(f"[{TrialLabel.of(item).tag}] started")

    def phase(self, item_id: str, phase: str, detail: str | None) -> None:
        super().phase(item_id, phase, detail)
        if self._verbose and item_id in self.running:
            more = f": {one_line(detail)}" if detail else ""
            self._line(f"[{self.running[item_id].label.tag}] {phase}{more}")

    def trial_done(self, event: TrialDone) -> None:
        super().trial_done(event)
        self._line(f"[{event.completed}/{event.total}] {_done(event)}")

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        with self.lock:
            yield
            self._last = time.monotonic()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _line(self, text: str) -> None:
        with self.lock:
            self._output.line(text)
            self._last = time.monotonic()

    def _beat(self) -> None:
        while not self._ended.wait(min(1.0, self._heartbeat_s / 4)):
            with self.lock:
                now = time.monotonic()
                if self.running and now - self._last >= self._heartbeat_s:
                    oldest = min(self.running.values(), key=lambda trial: trial.started)
                    age = clock(now - oldest.started)
                    self._line(f"… {len(self.running)} running, oldest {oldest.label.trial} for {age}")


def _done(event: TrialDone) -> str:
    label, result = TrialLabel.of(event.item).full, event.result
    if result.status == "skipped":
        return f"○ {label}  {_reason(result.skip_reason)}"
    glyph, why = _outcome(event)
    parts = [f"{glyph} {label}", elapsed(result.duration_ms), why]
    return "  ".join(part for part in parts if part)


def _outcome(event: TrialDone) -> tuple[str, str]:
    result, grade = event.result, event.result.grade_result
    if result.status == "error":
        return "⚠", _reason(result.error)
    if grade is None:
        return "○", "not graded"
    details = grade.details or []
    if event.passed is None:
        return "⚠", plural(sum(item.status == "error" for item in details), "grader error")
    if event.passed:
        return "✔", ""
    failed = sum(not item.passed for item in details)
    return "✘", f"{failed} of {len(details)} graders failed" if failed else f"score {two_decimals(grade.score)}"


def _reason(text: str | None) -> str:
    return cut_middle(one_line(text or ""), REASON_LIMIT)
