"""Progress on stderr: a live display on terminals, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vally_reporter_console.glyphs import fit
from vally_reporter_console.style import duration, one_line, plural

if TYPE_CHECKING:
    from vally import TrialDone, TrialItem

MAX_LINES = 10
HEARTBEAT_S = 60.0
REDRAWS_PER_SECOND = 4


@dataclass(slots=True)
class RunningTrial:
    """A trial under way."""

    label: str
    started: float
    phase: str = "preparing"


@dataclass(slots=True)
class Figures:
    """Totals of the run so far."""

    total: int = 0
    done: int = 0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    tokens: int = 0
    started: float = field(default_factory=time.monotonic)

    def add(self, event: TrialDone) -> None:
        """Count one finished trial."""
        self.done, self.total = event.completed, event.total
        result = event.result
        if result.status == "error" or (result.grade_result is not None and event.passed is None):
            self.errors += 1
        elif event.passed is not None:
            self.passed += event.passed
            self.failed += not event.passed
        usage = result.trajectory.metrics.token_usage if result.trajectory and result.trajectory.metrics else None
        self.tokens += usage.total_tokens if usage else 0

    def line(self) -> str:
        """`trials 12/40 · 10 pass · …`."""
        elapsed = time.monotonic() - self.started
        parts = [
            f"trials {self.done}/{self.total}",
            f"{self.passed} pass",
            f"{self.failed} fail",
            plural(self.errors, "error"),
            f"{_clock(elapsed)} elapsed",
        ]
        if 0 < self.done < self.total:
            parts.append(f"~{_clock(elapsed / self.done * (self.total - self.done))} left")
        parts.append(f"{self.tokens / 1000:.0f}k tokens" if self.tokens >= 1000 else f"{self.tokens} tokens")
        return " · ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def trial_label(item: TrialItem) -> str:
    """`config-eval / writes-json #2/3 (gpt-x)`."""
    number = f" #{item.trial_index + 1}/{item.total_trials}" if item.total_trials > 1 else ""
    model = f" ({item.model})" if item.model else ""
    return one_line(f"{item.eval_name} / {item.stimulus.name}{number}{model}")


class Progress:
    """Nothing; base of the two styles. All methods may be called from several threads."""

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
            self.running[item.item_id] = RunningTrial(trial_label(item), time.monotonic())

    def phase(self, item_id: str, phase: str) -> None:
        """A trial enters a phase."""
        with self.lock:
            if item_id in self.running:
                self.running[item_id].phase = phase

    def trial_done(self, event: TrialDone) -> None:
        """A trial has its record."""
        with self.lock:
            self.running.pop(event.item.item_id, None)
            self.figures.add(event)

    def write(self, text: str, stream: Any) -> None:
        """Write a finished block; nothing may come between its lines."""
        with self.lock:
            stream.write(fit(text, stream))
            stream.flush()

    def stop(self) -> None:
        """The run is over."""


class PlainProgress(Progress):
    """One line per finished trial, with `--verbose` per start and phase too, and a heartbeat when nothing happens."""

    def __init__(self, *, verbose: bool = False, heartbeat_s: float = HEARTBEAT_S) -> None:
        super().__init__()
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
            self._line(f"[{_tag(item)}] started")

    def phase(self, item_id: str, phase: str) -> None:
        super().phase(item_id, phase)
        if self._verbose and item_id in self.running:
            self._line(f"[{self.running[item_id].label}] {phase}")

    def trial_done(self, event: TrialDone) -> None:
        super().trial_done(event)
        self._line(f"[{event.completed}/{event.total}] {_done(event)}")

    def write(self, text: str, stream: Any) -> None:
        super().write(text, stream)
        self._last = time.monotonic()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _line(self, text: str) -> None:
        self.write(f"{text}\n", sys.stderr)

    def _beat(self) -> None:
        while not self._ended.wait(min(1.0, self._heartbeat_s / 4)):
            with self.lock:
                running = sorted(self.running.values(), key=lambda trial: trial.started)
                if running and time.monotonic() - self._last >= self._heartbeat_s:
                    oldest = running[0]
                    age = duration((time.monotonic() - oldest.started) * 1000)
                    self._line(f"… {len(running)} running, oldest {oldest.label} for {age}")


def _tag(item: TrialItem) -> str:
    return one_line(f"{item.stimulus.name}#{item.trial_index + 1}")


def _done(event: TrialDone) -> str:
    result = event.result
    label = f"{trial_label(event.item)}  {duration(result.duration_ms)}"
    if result.status == "error":
        return f"⚠ {label}  {one_line(result.error or '')}"
    if result.status == "skipped":
        return f"○ {trial_label(event.item)}  {one_line(result.skip_reason or '')}"
    details = (result.grade_result.details if result.grade_result else None) or []
    if event.passed is None:
        errors = sum(item.status == "error" for item in details)
        return f"⚠ {label}  {plural(errors, 'grader error')}" if details else f"○ {label}  not graded"
    failed = sum(not item.passed for item in details)
    return f"✔ {label}" if event.passed else f"✘ {label}  {failed} of {plural(len(details), 'grader')} failed"


class LiveProgress(Progress):
    """A display that is redrawn in place with `rich` and removed at the end."""

    def __init__(self, *, color: bool) -> None:
        super().__init__()
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, no_color=not color, highlight=False, markup=False, emoji=False)
        self._live = Live(
            console=self._console,
            refresh_per_second=REDRAWS_PER_SECOND,
            transient=True,
            get_renderable=self._picture,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def start(self, total: int) -> None:
        super().start(total)
        self._live.start()

    def write(self, text: str, stream: Any) -> None:
        # The display would be drawn into the block; it goes away while the block is written. The lock must be free
        # meanwhile: the thread that redraws holds one of its own and asks for this one.
        self._live.stop()
        super().write(text, stream)
        self._live.start()

    def stop(self) -> None:
        self._live.stop()

    def _picture(self) -> Any:
        from rich.text import Text

        return Text(fit("\n".join(self._lines()), sys.stderr), no_wrap=True, overflow="ellipsis")

    def _lines(self) -> Iterator[str]:
        with self.lock:
            running = sorted(self.running.values(), key=lambda trial: trial.started)
            now = time.monotonic()
            width = max((len(trial.label) for trial in running[:MAX_LINES]), default=0)
            frame = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"[int(now * REDRAWS_PER_SECOND) % 10]
            for trial in running[:MAX_LINES]:
                clock = duration((now - trial.started) * 1000)
                yield f"  {frame} {trial.label:<{width}}  {trial.phase:<10}  {clock}"
            if len(running) > MAX_LINES:
                yield f"  +{len(running) - MAX_LINES} more"
            yield f"  {self.figures.line()}"
