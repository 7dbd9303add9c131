"""One trial in full: header, prompt, timeline, output, metrics, graders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally import (
    MAIN_VARIANT,
    NO_MODEL,
    Trajectory,
    TrialResult,
    compact_json,
    cut_to_cells,
    elapsed,
    name_line,
    one_line,
    plural,
    printable,
    two_decimals,
)
from vally_command_inspect_runs.diff_view import diff_figures, diff_lines
from vally_command_inspect_runs.grades import GradeLayout
from vally_command_inspect_runs.timeline import TimelineLayout

if TYPE_CHECKING:
    from vally import Metrics, Style

GLYPHS = {"pass": "✔", "fail": "✘", "error": "⚠", "skipped": "○", "not graded": "○"}
MOST_LINES = 12
"""Lines of prompt and output that are shown unless nothing is shortened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialLayout:
    """What of a trial is shown and how. `part` limits it to the timeline (`events`) or the diff (`diff`)."""

    width: int
    style: Style
    whole: bool = False
    part: str | None = None

    def lines(self, result: TrialResult, verdict: str, run_dir: Path) -> Iterator[str]:
        """The lines of a trial; `run_dir` resolves the files that its record names."""
        yield self._header(result, verdict)
        trajectory = result.trajectory
        if self.part is None:
            yield from self._problems(result)
        if trajectory is None:
            yield "no trajectory was recorded"
        elif self.part == "events":
            yield from TimelineLayout(self.width, self.style, self.whole).lines(trajectory)
        elif self.part == "diff":
            yield from diff_lines(trajectory, run_dir, self.style)
        else:
            yield from self._body(result, trajectory, run_dir)
        if self.part is None and result.grade_result is not None:
            yield ""
            yield from GradeLayout(self.width, self.style, self.whole).lines(result.grade_result)

    def _header(self, result: TrialResult, verdict: str) -> str:
        number = f" #{result.trial_index + 1}/{result.total_trials}" if result.total_trials > 1 else ""
        name = name_line(f"{result.eval_name} / {result.stimulus}{number}" if result.eval_name else result.stimulus)
        variant = [name_line(result.variant)] if result.variant != MAIN_VARIANT else []
        grade = result.grade_result
        scored = grade is not None and grade.status != "error" and verdict in ("pass", "fail")
        score = f" {two_decimals(grade.score)}" if grade is not None and scored else ""
        verdict_words = self.style.glyph(GLYPHS[verdict], verdict) + score
        model = name_line(result.model or NO_MODEL)
        return "   ".join([self.style.paint(name, "bold"), *variant, model, verdict_words, elapsed(result.duration_ms)])

    def _problems(self, result: TrialResult) -> Iterator[str]:
        if result.status == "error":
            info = result.error_info
            code = f" [{one_line(info.code)}]" if info else ""
            phase = f" while {one_line(info.phase)}" if info else ""
            yield f"{self.style.paint('error', 'red')}{phase}: {one_line(result.error or 'unknown error')}{code}"
            if info and info.details and self.whole:
                yield f"  {printable(compact_json(info.details))}"
        if result.status == "skipped":
            yield f"skipped: {one_line(result.skip_reason or 'no reason given')}"
        for warning in result.warnings or ():
            yield f"{self.style.paint('warning', 'yellow')}: {one_line(warning)}"

    def _body(self, result: TrialResult, trajectory: Trajectory, run_dir: Path) -> Iterator[str]:
        yield ""
        yield from self._prompt(trajectory)
        yield "Timeline"
        yield from TimelineLayout(self.width, self.style, self.whole).lines(trajectory)
        yield ""
        yield "Output"
        yield from self._text(trajectory.output or "(none)")
        yield ""
        yield "Metrics"
        for label, value in _metrics(result, trajectory, diff_figures(trajectory, run_dir)):
            yield f"  {label:<11} {value}"

    def _prompt(self, trajectory: Trajectory) -> Iterator[str]:
        turns = trajectory.stimulus.get("turns")
        texts = [item for item in turns if isinstance(item, str)] if isinstance(turns, list) else []
        prompt = trajectory.stimulus.get("prompt")
        if not texts and isinstance(prompt, str):
            texts = [prompt]
        for number, text in enumerate(texts, start=1):
            yield "Prompt" if len(texts) == 1 else f"Prompt {number}/{len(texts)}"
            yield from self._text(text)
        if texts:
            yield ""

    def _text(self, text: str) -> Iterator[str]:
        lines = printable(text).rstrip("\n").expandtabs(4).split("\n")
        shown = lines if self.whole else lines[:MOST_LINES]
        for line in shown:
            yield f"  {line if self.whole else cut_to_cells(line, self.width - 2)}".rstrip()
        if len(lines) > len(shown):
            yield f"  … {plural(len(lines) - len(shown), 'more line')}, shown with --full"


def _metrics(result: TrialResult, trajectory: Trajectory, diff: str | None) -> Iterator[tuple[str, str]]:
    metadata = trajectory.metadata
    if trajectory.metrics is not None:
        yield from _counts(trajectory.metrics)
    judge = result.judge_usage
    if judge is not None and judge.call_count:
        yield "Judge", f"{plural(judge.total_tokens, 'token')} in {plural(judge.call_count, 'call')}"
    if diff is not None:
        yield "Diff", f"{diff} (shown with --diff)"
    yield "Model", _word(metadata.get("model")) or name_line(result.model or NO_MODEL)
    executor = " ".join(filter(None, (_word(metadata.get("executor")), _word(metadata.get("executorVersion")))))
    if executor:
        yield "Executor", executor
    if result.backend is not None:
        yield "Backend", name_line(result.backend)
    if trajectory.end_reason is not None:
        yield "Ended", name_line(trajectory.end_reason)
    if result.attempts is not None and result.attempts > 1:
        yield "Attempts", str(result.attempts)


def _counts(metrics: Metrics) -> Iterator[tuple[str, str]]:
    usage = metrics.token_usage
    if usage is not None:
        yield "Tokens", f"{usage.total_tokens:,} (in {usage.input_tokens:,}, out {usage.output_tokens:,})"
        for cost in [*([usage.cost] if usage.cost else []), *(usage.costs or [])]:
            yield "Cost", f"{cost.amount:,.6g} {one_line(cost.unit)}"
    yield "Turns", f"{metrics.turn_count or 0:,}"
    yield "Tool calls", f"{metrics.tool_call_count or 0:,}{_breakdown(metrics.tool_call_breakdown)}"
    if metrics.simulated_tool_call_count:
        yield "Simulated", f"{metrics.simulated_tool_call_count:,}"
    if metrics.skill_activation_breakdown:
        yield "Skills used", ", ".join(name_line(name) for name in sorted(metrics.skill_activation_breakdown))
    if metrics.wall_time_ms is not None:
        yield "Wall time", elapsed(metrics.wall_time_ms)
    yield "Errors", f"{metrics.error_count or 0:,}"


def _breakdown(counts: dict[str, int] | None) -> str:
    if not counts:
        return ""
    return f" ({', '.join(f'{name_line(name)} {number:,}' for name, number in sorted(counts.items()))})"


def _word(value: Any) -> str:
    return name_line(value) if isinstance(value, str) and value else ""
