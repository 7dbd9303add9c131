"""The report for people: progress while it runs, a card per stimulus, a summary at the end."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any

from vally_reporter_console.cards import CardLayout
from vally_reporter_console.closing import summary_lines
from vally_reporter_console.progress import LiveProgress, PlainProgress, Progress
from vally_reporter_console.stimulus_state import StimulusState
from vally_reporter_console.style import Style, one_line

if TYPE_CHECKING:
    from vally import RunComplete, RunOptions, RunStart, TrialDone, TrialPhase, TrialStart

EVIDENCE_WIDTH = 500
"""Characters of a grader line where no terminal sets a width."""


class ConsoleReporter:
    """Writes the report to stdout, or to stderr when stdout carries machine output; progress goes to stderr."""

    def __init__(self) -> None:
        self._progress = Progress()
        self._states: dict[tuple[int, str], StimulusState] = {}
        self._options: RunOptions | None = None
        self._layout = CardLayout(Style(), EVIDENCE_WIDTH)

    @property
    def _stream(self) -> Any:
        assert self._options is not None
        return sys.stdout if self._options.output == "text" else sys.stderr

    def on_run_start(self, event: RunStart) -> None:
        """Name the skills and start the display."""
        options = self._options = event.options
        color = options.color_stdout if options.output == "text" else options.color_stderr
        self._layout = CardLayout(Style(color), self._width(options))
        if options.progress == "live":
            self._progress = LiveProgress(color=options.color_stderr)
        elif options.progress == "plain":
            self._progress = PlainProgress(verbose=options.verbose)
        skills = sorted({name for item in event.evals for name in item.skills})
        if skills and not options.quiet:
            names = ", ".join(one_line(name) for name in skills)
            self._progress.write(f"Found {len(skills)} skill(s): {names}\n\n", self._stream)
        self._progress.start(event.total_items)

    def _width(self, options: RunOptions) -> int | None:
        if options.verbose:
            return None
        try:
            terminal = self._stream.isatty()
        except (AttributeError, ValueError):
            terminal = False
        return shutil.get_terminal_size((100, 24)).columns if terminal else EVIDENCE_WIDTH

    def on_trial_start(self, event: TrialStart) -> None:
        """Show a trial as running."""
        self._progress.trial_started(event.item)

    def on_trial_phase(self, event: TrialPhase) -> None:
        """Show the phase of a trial."""
        self._progress.phase(event.item_id, event.phase)

    def on_trial_result(self, event: TrialDone) -> None:
        """Count a trial, and print the card of its stimulus when it was the last one."""
        self._progress.trial_done(event)
        item = event.item
        state = self._state(event)
        state.add(event)
        if state.done < state.planned:
            return
        del self._states[item.eval_index, item.stimulus.name]
        assert self._options is not None
        if not self._options.quiet:
            self._progress.write(f"{self._layout.card(state)}\n", self._stream)

    def _state(self, event: TrialDone) -> StimulusState:
        assert self._options is not None
        item = event.item
        key = (item.eval_index, item.stimulus.name)
        if key not in self._states:
            self._states[key] = StimulusState(
                name=item.stimulus.name,
                eval_name=item.eval_name,
                model=event.result.model or "",
                planned=item.total_trials,
                threshold=item.scoring.threshold,
                pass_rate=item.scoring.pass_rate,
                prompt=item.stimulus.prompt,
                verbose=self._options.verbose,
                skip_grade=self._options.skip_grade,
            )
        return self._states[key]

    def on_run_complete(self, event: RunComplete) -> None:
        """Remove the display and print the summary."""
        assert self._options is not None
        self._progress.stop()
        lines = list(summary_lines(event.summary, self._layout.style, skip_grade=self._options.skip_grade))
        text = "\n".join([*lines, *(one_line(line) for line in event.lines)])
        Progress().write(f"{text}\n", self._stream)
