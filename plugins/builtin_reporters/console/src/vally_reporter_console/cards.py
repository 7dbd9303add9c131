"""The card of a stimulus: header, verdict line, then a block per shown trial."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vally import Style, fixed, name_line, one_line, plural, two_decimals
from vally_reporter_console.figures import arm_of
from vally_reporter_console.trial_block import TrialLayout

if TYPE_CHECKING:
    from vally import StimulusTally
    from vally_reporter_console.stimulus_state import StimulusState

PROMPT_LIMIT = 200
_WORDS = {
    "pass": ("✔", "PASS"),
    "fail": ("✘", "FAIL"),
    "error": ("⚠", "ERROR"),
    "skipped": ("○", "SKIPPED"),
    "ungraded": ("○", "SKIPPED"),
}


@dataclass(frozen=True, slots=True)
class CardLayout:
    """How cards are laid out."""

    style: Style
    trial: TrialLayout

    def card(self, state: StimulusState) -> str:
        """The whole card, ending with a blank line."""
        return "\n".join([*self._lines(state), "", ""])

    def _lines(self, state: StimulusState) -> Iterator[str]:
        yield f"━━━ {name_line(state.item.stimulus.name)} ━━━"
        if state.verbose:
            prompt = one_line(state.item.stimulus.prompt)
            yield prompt if len(prompt) <= PROMPT_LIMIT else f"{prompt[:PROMPT_LIMIT]}…"
        yield self._verdict(state)
        figures = state.figures(state.tally()) if state.verbose else []
        if figures:
            yield " · ".join(figures)
        for trial in state.shown:
            yield ""
            yield from self.trial.lines(trial, state.planned)

    def _verdict(self, state: StimulusState) -> str:
        tally = state.tally()
        verdict = state.verdict(tally)
        glyph, word = _WORDS[verdict]
        facts = ["not graded" if verdict == "ungraded" else f"{tally.c}/{state.planned} trials passed"]
        if tally.score is not None:
            facts.append(f"score {two_decimals(tally.score)}")
        if 0 < tally.c < tally.n:
            facts.append(f"flaky {fixed(100 * (tally.n - tally.c) / tally.n, 0)}%")
        facts += self._exceptions(state, tally)
        facts += [name_line(arm_of(state.item)), name_line(state.model)]
        return f"{self.style.glyph(glyph, word)}  {' · '.join(facts)}"

    def _exceptions(self, state: StimulusState, tally: StimulusTally) -> Iterator[str]:
        if tally.errors:
            yield plural(tally.errors, "execution error")
        if tally.grader_errors:
            yield plural(tally.grader_errors, "grader error")
        if tally.skipped:
            reasons = ", ".join(sorted(one_line(reason) for reason in state.skip_reasons))
            yield f"{tally.skipped} skipped" if state.planned == 1 else f"{tally.skipped} skipped ({reasons})"
