"""The report for people: progress while it runs, a card per stimulus, a summary at the end."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from vally import DEFAULT_BACKEND, Style, is_terminal, name_line
from vally_reporter_console.cards import CardLayout
from vally_reporter_console.closing import summary_lines
from vally_reporter_console.evidence import EvidenceLayout
from vally_reporter_console.output import Output
from vally_reporter_console.progress import HEARTBEAT_S, PlainProgress, Progress
from vally_reporter_console.stimulus_state import StimulusState, model_of
from vally_reporter_console.trial_block import TrialLayout

if TYPE_CHECKING:
    from vally import RunComplete, RunOptions, RunStart, TrialDone, TrialPhase, TrialStart


class ConsoleReporter:
    """Writes the report to stdout, or to stderr when stdout carries machine output; progress goes to stderr.

    `heartbeat_s` is after how many seconds without a line of plain progress one is printed.
    """

    def __init__(self, *, heartbeat_s: float = HEARTBEAT_S) -> None:
        self._heartbeat_s = heartbeat_s
        self._progress = Progress()
        self._states: dict[tuple[int, str], StimulusState] = {}

    def on_run_start(self, event: RunStart) -> None:
        """Name the skills and start the display."""
        options = self._options = event.options
        self._output = Output(options, event.environ)
        self._style = Style(self._output.color)
        self._progress = self._display(options, event.environ.get("TERM", ""))
        with self._unless_broken():
            skills = sorted({name for item in event.evals for name in item.skills})
            if skills and not options.quiet:
                names = ", ".join(name_line(name) for name in skills)
                self._output.block(f"Found {len(skills)} skill(s): {names}\n\n")
            if event.backend not in (None, DEFAULT_BACKEND) and not options.quiet:
                self._output.block(f"Backend: {name_line(event.backend)}\n\n")
            self._progress.start(event.total_items)

    def _display(self, options: RunOptions, terminal: str) -> Progress:
        if options.progress == "none":
            return Progress()
        if options.progress == "live" and is_terminal(sys.stderr) and terminal not in ("dumb", "unknown"):
            from vally_reporter_console.live import LiveProgress

            return LiveProgress()
        return PlainProgress(self._output, verbose=options.verbose, heartbeat_s=self._heartbeat_s)

    def on_trial_start(self, event: TrialStart) -> None:
        """Show a trial as running."""
        with self._unless_broken():
            self._progress.trial_started(event.item)

    def on_trial_phase(self, event: TrialPhase) -> None:
        """Show the phase of a trial."""
        with self._unless_broken():
            self._progress.phase(event.item_id, event.phase, event.detail)

    def on_trial_result(self, event: TrialDone) -> None:
        """Count a trial, and print the card of its stimulus when it was the last one."""
        with self._unless_broken():
            self._progress.trial_done(event)
            if self._options.quiet:
                return
            item = event.item
            key = (item.eval_index, item.stimulus.name)
            state = self._states.get(key)
            if state is None:
                state = StimulusState(item, model_of(event.result), self._options.verbose)
                self._states[key] = state
            state.add(event)
            if state.is_complete:
                self._print_card(self._states.pop(key))

    def _print_card(self, state: StimulusState) -> None:
        # The width is asked for each time: a terminal may change its size.
        whole = self._options.verbose
        width = self._output.width() if whole or self._output.is_terminal() else None
        layout = CardLayout(self._style, TrialLayout(self._style, EvidenceLayout(width, whole)))
        with self._progress.away():
            self._output.block(layout.card(state))

    def on_run_complete(self, event: RunComplete) -> None:
        """Remove the display and print the summary."""
        with self._unless_broken():
            # A stimulus of which some trials were told in an earlier part of the run has no last trial here.
            for key in list(self._states):
                self._print_card(self._states.pop(key))
            self._progress.stop()
            lines = summary_lines(event.summary, self._style, quiet=self._options.quiet)
            self._output.block("".join(f"{line}\n" for line in lines))

    @contextlib.contextmanager
    def _unless_broken(self) -> Iterator[None]:
        """End the display when something raises: a reporter that failed gets no further event."""
        try:
            yield
        except BaseException:
            self._progress.stop()
            raise
