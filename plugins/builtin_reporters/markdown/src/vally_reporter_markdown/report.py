"""The text of `eval-results.md`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vally import one_decimal, resolve_grade_pass, two_decimals
from vally_reporter_markdown.figures import StimulusFigures
from vally_reporter_markdown.text import NO_VALUE, cell, duration, fenced, row

if TYPE_CHECKING:
    from vally import EvalSummary, GraderResult, PlannedEval, RunStart, RunSummary, TrialResult

EVAL_HEAD = ("Eval", "Model", "Score", "Threshold", "Stimuli", "Trials passed", "Duration", "Result")
STIMULUS_HEAD = (
    "Stimulus",
    "Trials",
    "Score",
    "pass@k",
    "pass^k",
    "Flaky",
    "Turns",
    "Tool Calls",
    "Tokens",
    "Duration",
    "Result",
)
GRADER_HEAD = ("Grader", "Score", "Evidence", "Result")
_VERDICTS = {
    "pass": "✅ PASS",
    "fail": "❌ FAIL",
    "error": "❌ ERROR",
    "skipped": "⏭️ SKIPPED",
    "ungraded": "⏭️ not graded",
}
Figures = Mapping[tuple[int, str], StimulusFigures]
Records = Mapping[str, "TrialResult"]


class Report:
    """One run as Markdown; `lines()` yields it piece by piece."""

    def __init__(self, start: RunStart, summary: RunSummary, figures: Figures) -> None:
        self._start = start
        self._summary = summary
        self._figures = figures
        self._skip_grade = start.options.skip_grade

    def head(self) -> Iterator[str]:
        """Title, verdict, facts and the table of evals."""
        yield "# Vally eval results"
        yield ""
        yield self._verdict()
        yield ""
        yield from self._facts()
        yield ""
        yield from _table(EVAL_HEAD, "--:::::-", (self._eval_row(item) for item in self._summary.evals))

    def _verdict(self) -> str:
        summary, totals = self._summary, self._summary.totals
        passed = sum(item.passed for item in summary.evals)
        word = "**✅ PASSED**" if summary.passed else "**❌ FAILED**"
        if summary.partial:
            word = f"**⚠️ PARTIAL ({summary.stop_reason})** {word}"
        return (
            f"{word}: {passed} of {_plural(len(summary.evals), 'eval')} passed, {_plural(totals.trials, 'trial')} "
            f"({totals.passed} pass, {totals.failed} fail, {totals.errors} errors, {totals.skipped} skipped), "
            f"{totals.flaky_stimuli} flaky"
        )

    def _facts(self) -> Iterator[str]:
        start, summary = self._start, self._summary
        times = f"Started: {summary.started_at} · Duration: {duration(summary.duration_ms)}"
        yield f"- Run: {cell(summary.run_id)} · {times}"
        yield f"- Executor: {_joined(item.executor for item in start.evals)}"
        judges = _joined(item.judge_model for item in start.evals)
        yield f"- Model: {_joined(item.model for item in start.evals)} · Judge model: {judges}"
        yield f"- Vally: {start.version}"

    def _eval_row(self, item: EvalSummary) -> str:
        stimuli = _stimuli(item)
        passed = sum(stimulus.get("verdict") == "pass" for stimulus in stimuli)
        trials = sum(int(stimulus.get("trials") or 0) for stimulus in stimuli)
        good = sum(int(stimulus.get("passed") or 0) for stimulus in stimuli)
        score = ((item.stats or {}).get("score") or {}).get("mean")
        return row(
            cell(item.name) or NO_VALUE,
            cell(item.model),
            self._score(score),
            NO_VALUE if item.threshold is None else two_decimals(item.threshold),
            f"{passed}/{item.stimuli_total}",
            f"{good}/{trials}",
            duration(item.duration_ms),
            self._eval_result(item),
        )

    def _eval_result(self, item: EvalSummary) -> str:
        if self._skip_grade:
            return "⏭️ not graded" if item.passed else "❌ ERROR"
        return "✅ PASS" if item.passed else "❌ FAIL"

    def _score(self, value: Any) -> str:
        return NO_VALUE if value is None or self._skip_grade else two_decimals(float(value))

    def section(self, planned: PlannedEval, item: EvalSummary) -> Iterator[str]:
        """Heading, verdict and the table of stimuli of one eval."""
        yield ""
        yield f"## {cell(item.name)} ({cell(item.model)})"
        yield ""
        if item.reason:
            yield cell(item.reason)
            yield ""
        rows = (self._stimulus_row(planned.index, stimulus) for stimulus in _stimuli(item))
        yield from _table(STIMULUS_HEAD, "-::::-::::-", rows)

    def _stimulus_row(self, index: int, stimulus: Mapping[str, Any]) -> str:
        name = str(stimulus.get("name"))
        figures = self._figures.get((index, name), StimulusFigures())
        flaky = f"yes ({float(stimulus.get('flakinessPercent') or 0):.0f}%)" if stimulus.get("flaky") else "no"
        tokens = figures.mean(figures.tokens)
        return row(
            cell(name) or NO_VALUE,
            f"{stimulus.get('passed') or 0}/{stimulus.get('trials') or 0}",
            self._score(stimulus.get("score")),
            self._score(stimulus.get("passAtK")),
            self._score(stimulus.get("passToTheK")),
            NO_VALUE if self._skip_grade else flaky,
            _mean(figures.mean(figures.turns)),
            _mean(figures.mean(figures.tool_calls)),
            NO_VALUE if tokens is None else f"{tokens:,.0f}",
            duration(figures.duration_ms / figures.finished) if figures.finished else NO_VALUE,
            "⏭️ not graded" if self._skip_grade else _VERDICTS.get(str(stimulus.get("verdict")), NO_VALUE),
        )

    def trial(self, result: TrialResult, threshold: float | None) -> Iterator[str]:
        """The section of one trial: figures, graders and the agent's output."""
        number = f": trial {result.trial_index + 1}/{result.total_trials}" if result.total_trials > 1 else ""
        yield ""
        yield f"### {cell(result.stimulus)}{number}"
        yield ""
        yield self._trial_line(result, threshold)
        if result.grade_result is not None and result.grade_result.details:
            yield ""
            yield from _table(GRADER_HEAD, "-:--", _grader_rows(result.grade_result.details, ""))
        output = result.trajectory.output if result.trajectory else ""
        if output.strip():
            yield ""
            yield "<details><summary>Agent output</summary>"
            yield ""
            yield fenced(output)
            yield ""
            yield "</details>"

    def _trial_line(self, result: TrialResult, threshold: float | None) -> str:
        if result.status == "error":
            return f"❌ ERROR: {cell(result.error or 'unknown error')}"
        if result.status == "skipped":
            return f"⏭️ SKIPPED: {cell(result.skip_reason or '')}"
        parts = []
        if result.grade_result is not None:
            passed = resolve_grade_pass(result.grade_result, threshold)
            parts += ["grader error"] if passed is None else []
            parts.append(f"Score {two_decimals(result.grade_result.score)}")
        trajectory = result.trajectory
        metrics = trajectory.metrics if trajectory else None
        if metrics is not None:
            tokens = metrics.token_usage.total_tokens if metrics.token_usage else 0
            parts += [
                _plural(metrics.turn_count or 0, "turn"),
                _plural(metrics.tool_call_count or 0, "tool call"),
                f"{tokens:,} token{'' if tokens == 1 else 's'}",
            ]
        parts.append(duration(result.duration_ms))
        if trajectory is not None and trajectory.end_reason:
            parts.append(f"end reason: {cell(trajectory.end_reason)}")
        return " · ".join(parts)


def _stimuli(item: EvalSummary) -> Sequence[Mapping[str, Any]]:
    return (item.stats or {}).get("stimuli") or []


def _grader_rows(details: Sequence[GraderResult], indent: str) -> Iterator[str]:
    for item in details:
        result = "❌ ERROR" if item.status == "error" else "✅" if item.passed else "❌"
        yield row(f"{indent}{cell(item.name) or NO_VALUE}", two_decimals(item.score), cell(item.evidence), result)
        yield from _grader_rows(item.details or (), f"{indent}↳ ")


def _table(head: Sequence[str], alignment: str, rows: Iterator[str]) -> Iterator[str]:
    yield row(*head)
    yield f"|{'|'.join('---:' if mark == ':' else '---' for mark in alignment)}|"
    yield from rows


def _mean(value: float | None) -> str:
    return NO_VALUE if value is None else one_decimal(value)


def _joined(values: Iterator[str]) -> str:
    return ", ".join(cell(value) for value in dict.fromkeys(values)) or NO_VALUE


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
