"""The card of a stimulus: verdict line, then a block per shown trial with metrics and graders."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vally import two_decimals
from vally_reporter_console.style import Style, cut, duration, one_line

if TYPE_CHECKING:
    from vally import GraderResult, Metrics
    from vally_reporter_console.stimulus_state import ShownTrial, StimulusState

_WORDS = {"PASS": "✔", "FAIL": "✘", "ERROR": "⚠", "SKIPPED": "○", "DONE": "○"}
_METRICS_RULE = "─" * 13
_GRADERS_RULE = "─" * 41


@dataclass(frozen=True, slots=True)
class CardLayout:
    """How cards are laid out; `width` cuts evidence, None prints it whole, wrapped at 100 columns."""

    style: Style
    width: int | None

    def card(self, state: StimulusState) -> str:
        """The whole card, ending with a blank line."""
        return "\n".join([*self._lines(state), ""])

    def _lines(self, state: StimulusState) -> Iterator[str]:
        yield f"━━━ {one_line(state.name)} ━━━"
        if state.verbose:
            yield cut(one_line(state.prompt), 200)
        yield self._verdict(state)
        for trial in state.shown:
            yield ""
            yield from self._trial(state, trial)

    def _verdict(self, state: StimulusState) -> str:
        word = state.verdict
        parts = [self.style.glyph(_WORDS[word], word) + "  " + self._counts(state)]
        if state.score is not None:
            parts.append(f"score {two_decimals(state.score)}")
        if state.flakiness is not None:
            parts.append(f"flaky {state.flakiness:.0f}%")
        return " · ".join([*parts, one_line(state.eval_name), one_line(state.model)])

    def _counts(self, state: StimulusState) -> str:
        if state.verdict == "SKIPPED":
            return one_line(state.skip_reason or "skipped")
        if state.verdict == "DONE":
            return f"{state.done}/{state.planned} trials done, not graded"
        text = f"{state.passed}/{state.planned} trials passed"
        if state.errors:
            text += f", {state.errors} with an execution error"
        if state.grader_errors:
            text += f", {state.grader_errors} with a grader error"
        if state.skipped:
            text += f", {state.skipped} skipped"
        return text

    def _trial(self, state: StimulusState, trial: ShownTrial) -> Iterator[str]:
        if state.planned > 1:
            yield self._trial_line(state, trial)
        if trial.status == "error":
            yield f"{self.style.glyph('⚠', 'ERROR')}  {one_line(trial.error or 'unknown error')}"
            return
        if trial.status == "skipped":
            yield f"{self.style.glyph('○', 'SKIPPED')}  {one_line(trial.skip_reason or '')}"
            return
        yield from self._metrics(trial)
        if trial.grade is not None:
            yield from self._graders(trial.grade)

    def _trial_line(self, state: StimulusState, trial: ShownTrial) -> str:
        glyph, word = {True: ("✔", "pass"), False: ("✘", "fail"), None: ("⚠", "error")}[trial.passed]
        if trial.status == "skipped" or (trial.passed is None and trial.grade is None and trial.status == "success"):
            glyph, word = "○", "skipped" if trial.status == "skipped" else "not graded"
        score = f"  score {two_decimals(trial.grade.score)}" if trial.grade is not None else ""
        return f"Trial {trial.index + 1}/{state.planned}  {self.style.glyph(glyph, word)}{score}"

    def _metrics(self, trial: ShownTrial) -> Iterator[str]:
        rows = dict(_metric_rows(trial.metrics, trial))
        yield "Metrics"
        yield _METRICS_RULE
        yield from (f"  {label:<11} {value}" for label, value in rows.items())

    def _graders(self, grade: GraderResult) -> Iterator[str]:
        details = grade.details or []
        failed = sum(not item.passed and item.status != "error" for item in details)
        errors = sum(item.status == "error" for item in details)
        yield f"Graders ({sum(item.passed for item in details)}/{len(details)})"
        yield _GRADERS_RULE
        for item in details:
            yield from self._grader(item, "  ")
        yield ""
        yield _grader_count(failed, errors)

    def _grader(self, item: GraderResult, indent: str) -> Iterator[str]:
        glyph = "⚠" if item.status == "error" else "✔" if item.passed else "✘"
        head = f"{indent}{self.style.glyph(glyph)} {one_line(item.name)}  "
        plain = len(indent) + 2 + len(one_line(item.name)) + 2
        evidence = one_line(item.evidence)
        if self.width is not None:
            yield head + cut(evidence, max(self.width - plain, 20))
        else:
            first, *more = textwrap.wrap(evidence, max(100 - plain, 40), break_long_words=False) or [""]
            yield head + first
            yield from (f"{' ' * (len(indent) + 4)}{line}" for line in more)
        for detail in item.details or ():
            yield from self._grader(detail, indent + "  ")


def _metric_rows(metrics: Metrics | None, trial: ShownTrial) -> Iterator[tuple[str, str]]:
    if metrics is not None:
        tokens = metrics.token_usage.total_tokens if metrics.token_usage else 0
        yield "Tokens", f"{tokens:,}"
        yield "Turns", f"{metrics.turn_count or 0:,}"
        yield "Tool calls", f"{metrics.tool_call_count or 0:,}"
        if metrics.wall_time_ms is not None:
            yield "Wall time", duration(metrics.wall_time_ms)
        yield "Errors", f"{metrics.error_count or 0:,}"
    if trial.skills:
        yield "Skills used", ", ".join(one_line(name) for name in trial.skills)
    yield "Model", one_line(trial.model)
    if trial.end_reason not in (None, "completed"):
        yield "Ended", one_line(str(trial.end_reason))


def _grader_count(failed: int, errors: int) -> str:
    if errors:
        return f"{failed} grader(s) failed, {errors} grader error(s)."
    return f"{failed} grader(s) failed." if failed else "All graders passed."
