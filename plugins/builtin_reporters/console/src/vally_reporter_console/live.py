"""Progress that is redrawn in place on a terminal, with `rich`."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO, cast

from rich.console import Console
from rich.live import Live
from rich.text import Text

from vally import can_encode, cells, clock, cut_to_cells, fit_glyphs, pad, report_width
from vally_reporter_console.progress import Progress

MAX_LINES = 10
REDRAWS_PER_SECOND = 8
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_FRAMES = "|/-\\"
_PHASE_WIDTH = 9


class _SteadyConsole(Console):
    """Leaves the cursor visible: a program that is killed could not bring it back."""

    def show_cursor(self, show: bool = True) -> bool:
        return False


class _Above:
    """Stands for stderr while the display is on: whole lines that others print appear above it."""

    def __init__(self, stream: Any, away: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
        self._stream = stream
        self._away = away
        # Never held while printing, which waits for the display.
        self._lock = threading.Lock()
        self._rest = ""

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        with self._lock:
            lines, newline, self._rest = (self._rest + text).rpartition("\n")
        self._print(lines + newline)
        return len(text)

    def flush(self) -> None:
        """Nothing to do: whole lines are out already, and the display would write into any other."""

    def finish(self) -> None:
        """Print what has no end of line yet."""
        with self._lock:
            rest, self._rest = self._rest, ""
        self._print(rest)

    def _print(self, text: str) -> None:
        if text:
            with self._away():
                self._stream.write(text)
                self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class LiveProgress(Progress):
    """A line per running trial and the totals; gone while a block of the report is written, and at the end.

    What others print to stderr meanwhile appears above it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._stderr = sys.stderr
        self._above = _Above(self._stderr, self.away)
        self._display_lock = threading.RLock()
        self._frames = _FRAMES if can_encode(self._stderr, _FRAMES) else _PLAIN_FRAMES
        self._console = _SteadyConsole(file=self._stderr, no_color=True, highlight=False, markup=False, emoji=False)
        self._live: Live | None = None
        self._shown_at = 0.0

    def start(self, total: int) -> None:
        super().start(total)
        with self._display_lock:
            sys.stderr = cast("TextIO", self._above)
            self._show()

    def _show(self) -> None:
        # A new one each time: one that was stopped would remove lines above its first picture.
        self._live = Live(
            console=self._console,
            refresh_per_second=REDRAWS_PER_SECOND,
            transient=True,
            get_renderable=self._picture,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        # Cards may come faster than it is redrawn; without a picture at once it would hardly be seen between them.
        now = time.monotonic()
        is_due = now - self._shown_at >= 1 / REDRAWS_PER_SECOND
        self._shown_at = now if is_due else self._shown_at
        self._live.start(refresh=is_due)

    def _hide(self) -> bool:
        live, self._live = self._live, None
        if live is not None:
            live.stop()
        return live is not None

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        # Not the lock of the figures: the thread that redraws holds one of its own and asks for that one.
        with self._display_lock:
            was_shown = self._hide()
            try:
                yield
            finally:
                if was_shown:
                    self._show()

    def stop(self) -> None:
        with self._display_lock:
            self._hide()
            if sys.stderr is self._above:
                sys.stderr = self._stderr
        self._above.finish()

    def _picture(self) -> Any:
        width = report_width(self._stderr, {})
        # The last column stays free: some terminals would wrap there.
        lines = [cut_to_cells(fit_glyphs(line, self._stderr), width - 1) for line in self._lines()]
        return Text("\n".join(lines), no_wrap=True, overflow="crop")

    def _lines(self) -> Iterator[str]:
        with self.lock:
            running = sorted(self.running.values(), key=lambda trial: trial.started)
            totals = self.figures.line()
        now = time.monotonic()
        frame = self._frames[int(now * REDRAWS_PER_SECOND) % len(self._frames)]
        shown = running[:MAX_LINES]
        width = max((cells(trial.label.full) for trial in shown), default=0)
        for trial in shown:
            label = pad(trial.label.full, width)
            yield f"  {frame} {label}   {trial.phase:<{_PHASE_WIDTH}}  {clock(now - trial.started)}"
        if len(running) > MAX_LINES:
            yield f"  +{len(running) - MAX_LINES} more"
        yield f"  {totals}"
