"""Progress that is redrawn in place on a terminal, with `rich`."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from vally_reporter_console.glyphs import can_encode, fit
from vally_reporter_console.output import DEFAULT_WIDTH, terminal_width
from vally_reporter_console.progress import Progress
from vally_reporter_console.wording import cells, clock, cut_to_cells, pad

if TYPE_CHECKING:
    from vally_reporter_console.output import Output

MAX_LINES = 10
REDRAWS_PER_SECOND = 8
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_FRAMES = "|/-\\"
_PHASE_WIDTH = 9


class _SteadyConsole(Console):
    """Leaves the cursor visible: a program that is killed could not bring it back."""

    def show_cursor(self, show: bool = True) -> bool:
        return False


class LiveProgress(Progress):
    """A line per running trial and the totals; gone while a block of the report is written, and at the end.

    What others print to stderr meanwhile appears above it.
    """

    def __init__(self, output: Output) -> None:
        super().__init__()
        self._output = output
        self._stderr = sys.stderr
        frames = _FRAMES if can_encode(self._stderr, _FRAMES) else _PLAIN_FRAMES
        self._frames = fit(frames, self._stderr)
        self._live = Live(
            console=_SteadyConsole(stderr=True, no_color=True, highlight=False, markup=False, emoji=False),
            refresh_per_second=REDRAWS_PER_SECOND,
            transient=True,
            get_renderable=self._picture,
            redirect_stdout=False,
        )

    def start(self, total: int) -> None:
        super().start(total)
        self._live.start()

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        # The lock of this object must be free: the thread that redraws holds one of its own and asks for this one.
        if not self._live.is_started:
            yield
            return
        self._live.stop()
        yield
        self._live.start()

    def stop(self) -> None:
        self._live.stop()

    def _picture(self) -> Any:
        width = terminal_width(self._stderr) or DEFAULT_WIDTH
        # The last column stays free: some terminals would wrap there.
        lines = [cut_to_cells(fit(line, self._stderr), width - 1) for line in self._lines()]
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
