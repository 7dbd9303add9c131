"""The run as the page shows it: verdict, evals with their stimuli, and the trials on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vally import (
    RunRecords,
    counted_evals,
    eval_figures,
    fixed,
    index_results,
    is_ungraded,
    plural,
    redact_patterns,
    run_word,
    stimulus_figures,
    stimulus_stats,
    two_decimals,
    verdict_count,
    wilson_interval,
)
from vally_reporter_html.charts import Bar, Scatter, bar, scatter
from vally_reporter_html.facts import GLYPHS, StimulusFacts, TrialFacts, Verdict
from vally_reporter_html.selection import Level, Selection, select
from vally_reporter_html.text import milliseconds, name
from vally_reporter_html.trials import TrialView, trial_view

if TYPE_CHECKING:
    from pathlib import Path

    from vally import EvalSummary, PlannedEval, RunStart, RunSummary

MAX_COLUMNS = 100
"""Trials of a stimulus that have a cell of their own in the matrix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A trial in the matrix; `href` is the id of its details, empty when it has none."""

    facts: TrialFacts
    number: int
    href: str
    title: str


@dataclass(slots=True, kw_only=True)
class StimulusView:
    """A stimulus with its statistics, which are texts ready to be shown."""

    name: str
    verdict: str
    glyph: str
    trials: str
    score: str
    score_value: float
    pass_at_k: str
    pass_to_the_k: str
    flaky: str
    figures: list[str]
    rate: Bar | None
    turns: str
    tool_calls: str
    tokens: str
    duration: str
    facts: StimulusFacts
    cells: list[Cell] = field(default_factory=list)

    @property
    def shown(self) -> list[Cell]:
        """The trials in the matrix."""
        return self.cells[:MAX_COLUMNS]

    @property
    def more(self) -> int:
        """How many trials the matrix has no room for."""
        return len(self.cells) - len(self.shown)


@dataclass(slots=True, kw_only=True)
class EvalView:
    """One eval x variant x model."""

    index: int
    anchor: str
    name: str
    model: str
    variant: str
    file: str
    verdict: str
    glyph: str
    reason: str
    error: str
    score: str
    score_bar: Bar | None
    threshold: str
    pass_rate: str
    stimuli_passed: str
    trials_passed: str
    duration: str
    duration_ms: int
    figures: list[str]
    stimuli: list[StimulusView]
    planned: PlannedEval


class Page:
    """Everything the template asks for. Raises `OSError` when the records cannot be read."""

    def __init__(self, start: RunStart, summary: RunSummary, run_dir: Path) -> None:
        self.start, self.summary = start, summary
        self._run_dir = run_dir
        self._records: dict[Path, RunRecords] = {}
        self._sizes: dict[str, int] = {}
        self.skip_grade = start.options.skip_grade
        known = {(item.eval_file_path, item.variant, item.model): item for item in summary.evals}
        pairs = [(p, known.get((p.eval_file_path, p.variant, p.model))) for p in start.evals]
        self.evals = [self._eval(planned, item) for planned, item in pairs if item is not None]
        self.selection = self._selected()
        for evaluation in self.evals:
            self._cells(evaluation)
        self.variants = len({item.variant for item in self.evals}) > 1

    @property
    def verdict(self) -> tuple[str, str]:
        """Class and words of the verdict."""
        word = run_word(self.summary)
        if word == "partial":
            return "partial", f"PARTIAL ({name(self.summary.stop_reason or 'incomplete')})"
        return {"passed": "pass", "failed": "fail", "skipped": "skipped"}[word], word.upper()

    @property
    def sentence(self) -> str:
        """What the verdict rests on."""
        totals = self.summary.totals
        parts = [counted_evals(self.summary)]
        parts.append(f"{plural(totals.trials, 'trial')}: {totals.passed:,} pass, {totals.failed:,} fail")
        if totals.errors:
            parts.append(f"{plural(totals.errors, 'trial')} not measured because of errors")
        if totals.skipped:
            parts.append(f"{totals.skipped:,} skipped")
        return " · ".join(parts)

    @property
    def tiles(self) -> list[tuple[str, str, str]]:
        """Label, value and class of the figures at the top."""
        totals = self.summary.totals
        costs = [f"{fixed(float(cost['amount']), 2)} {name(str(cost['unit']))}" for cost in totals.cost]
        tiles = [
            ("Passed", f"{totals.passed:,}", "pass" if totals.passed else ""),
            ("Failed", f"{totals.failed:,}", "fail" if totals.failed else ""),
            ("Errors", f"{totals.errors:,}", "error" if totals.errors else ""),
            ("Skipped", f"{totals.skipped:,}", ""),
            ("Flaky stimuli", f"{totals.flaky_stimuli:,}", "flaky" if totals.flaky_stimuli else ""),
            ("Duration", milliseconds(self.summary.duration_ms), ""),
            ("Tokens", f"{totals.total_tokens:,}", ""),
        ]
        return [*tiles, *(("Cost", cost, "") for cost in costs)]

    @property
    def identity(self) -> list[tuple[str, str]]:
        """Where the numbers come from."""
        start, evals = self.start, self.start.evals
        return [
            ("Run", name(self.summary.run_id)),
            ("Started", name(self.summary.started_at)),
            ("Executor", _joined(item.executor for item in evals)),
            *([("Backend", name(start.backend))] if start.backend is not None else []),
            ("Model", _joined(item.model for item in evals)),
            ("Judge model", _joined(item.judge_model for item in evals)),
            ("Workers", str(start.workers)),
            ("Vally", name(start.version)),
        ]

    @property
    def omissions(self) -> list[str]:
        """What a run of this size leaves out of the page."""
        chosen, said = self.selection, []
        if chosen.brief:
            said.append(f"{plural(chosen.brief, 'trial')} without timeline, output and diff")
        if chosen.cells:
            said.append(f"{plural(chosen.cells, 'trial')} as cells of the matrix only")
        return said

    @property
    def scatter(self) -> Scatter | None:
        """Trials by duration and tokens."""
        return scatter(
            [
                (cell.facts, f"{item.name} / {cell.title}", cell.href)
                for item in self.evals
                for stimulus in item.stimuli
                for cell in stimulus.cells
            ]
        )

    def trials(self, item: EvalView) -> Iterator[TrialView]:
        """The trials of an eval that have a place of their own, read one by one."""
        for position, part in enumerate(item.planned.stimuli):
            levels = [self.selection.level((item.index, position, number)) for number in range(part.trials)]
            if not any(levels):
                continue
            for result in self._of(item.planned).of(item.planned, part.name, events=Level.FULL in levels):
                level = levels[result.trial_index] if result.trial_index < len(levels) else Level.CELL
                if level is not Level.CELL:
                    yield trial_view(
                        result,
                        anchor=_anchor(item.index, position, result.trial_index),
                        threshold=item.planned.threshold,
                        level=level,
                        run_dir=self._directory(item.planned),
                        is_flaky=bool(item.stimuli[position].flaky),
                    )

    def _directory(self, planned: PlannedEval) -> Path:
        return self.start.variant_dirs.get(planned.variant, self._run_dir)

    def _of(self, planned: PlannedEval) -> RunRecords:
        path = self._directory(planned) / "results.jsonl"
        if path not in self._records:
            self._records[path] = RunRecords(path)
            self._sizes |= {entry.item_id: entry.length for entry in index_results(path).entries}
        return self._records[path]

    def _eval(self, planned: PlannedEval, item: EvalSummary) -> EvalView:
        stats, score = stimulus_stats(item), (item.stats or {}).get("score") or {}
        by_name = {str(entry.get("name")): entry for entry in stats}
        records = self._of(planned)
        stimuli = [
            self._stimulus(
                by_name.get(part.name, {"name": part.name}),
                StimulusFacts.over(records.of(planned, part.name), planned.threshold),
            )
            for part in planned.stimuli
        ]
        verdict = _eval_verdict(item, skip_grade=self.skip_grade)
        shown = None if self.skip_grade else score.get("mean")
        return EvalView(
            index=planned.index,
            anchor=f"e{planned.index}",
            name=name(item.name),
            model=name(item.model),
            variant=name(item.variant),
            file=name(item.eval_file_path),
            verdict=verdict,
            glyph=GLYPHS[verdict],
            reason=name(item.reason) if item.reason else "",
            error=name(redact_patterns(item.error)) if item.error else "",
            score="–" if shown is None else two_decimals(shown),
            score_bar=bar(shown, score.get("low"), score.get("high"), item.threshold),
            threshold="–" if item.threshold is None else two_decimals(item.threshold),
            pass_rate="" if item.required_pass_rate is None else two_decimals(item.required_pass_rate),
            stimuli_passed=f"{sum(entry.get('verdict') == 'pass' for entry in stats)}/{item.stimuli_total}",
            trials_passed=_of_all(stats),
            duration=milliseconds(item.duration_ms),
            duration_ms=item.duration_ms,
            figures=eval_figures(item),
            stimuli=stimuli,
            planned=planned,
        )

    def _stimulus(self, stats: Mapping[str, Any], facts: StimulusFacts) -> StimulusView:
        score = None if self.skip_grade else stats.get("score")
        verdict = str(stats.get("verdict") or "ungraded")
        n = verdict_count(stats)
        interval = wilson_interval(int(stats.get("passed") or 0), n)
        low, high = (interval.low, interval.high) if interval and n > 1 else (None, None)
        measured = facts.turns is not None
        return StimulusView(
            name=name(str(stats.get("name"))),
            verdict=verdict,
            glyph=GLYPHS.get(verdict, "–"),
            trials=f"{stats.get('passed') or 0}/{stats.get('trials') or 0}",
            score=_decimals(score),
            score_value=-1.0 if score is None else float(score),
            pass_at_k=_decimals(stats.get("passAtK")),
            pass_to_the_k=_decimals(stats.get("passToTheK")),
            flaky=f"yes ({fixed(float(stats.get('flakinessPercent') or 0), 0)}%)" if stats.get("flaky") else "",
            figures=stimulus_figures(stats),
            rate=bar(stats.get("passRate"), low, high),
            turns="–" if facts.turns is None else fixed(facts.turns, 1),
            tool_calls="–" if facts.tool_calls is None else fixed(facts.tool_calls, 1),
            tokens=f"{facts.tokens:,}" if measured else "–",
            duration=milliseconds(facts.duration_ms) if facts.trials else "–",
            facts=facts,
        )

    def _selected(self) -> Selection:
        def entries() -> Iterator[tuple[tuple[int, int, int], bool, int]]:
            for item in self.evals:
                for position, stimulus in enumerate(item.stimuli):
                    for facts in stimulus.facts.trials:
                        item_id = item.planned.item_id(item.planned.stimuli[position].name, facts.index)
                        yield (item.index, position, facts.index), facts.is_bad, self._sizes.get(item_id, 0)

        return select(entries())

    def _cells(self, item: EvalView) -> None:
        for position, stimulus in enumerate(item.stimuli):
            for facts in stimulus.facts.trials:
                listed = self.selection.level((item.index, position, facts.index)) is not Level.CELL
                score = "" if facts.score is None else f", score {two_decimals(facts.score)}"
                stimulus.cells.append(
                    Cell(
                        facts=facts,
                        number=facts.index + 1,
                        href=_anchor(item.index, position, facts.index) if listed else "",
                        title=f"{stimulus.name}, trial {facts.index + 1}: {facts.verdict}{score}, "
                        f"{milliseconds(facts.duration_ms)}",
                    )
                )


def _eval_verdict(item: EvalSummary, *, skip_grade: bool) -> Verdict:
    """What an eval came to; `error` when nothing but errors came of it."""
    if item.passed:
        return "ungraded" if skip_grade or is_ungraded(item) else "pass"
    verdicts = {entry.get("verdict") for entry in stimulus_stats(item)}
    return "error" if "error" in verdicts and not verdicts & {"pass", "fail"} else "fail"


def _of_all(stats: Sequence[Mapping[str, Any]]) -> str:
    passed, trials = (sum(int(entry.get(key) or 0) for entry in stats) for key in ("passed", "trials"))
    return f"{passed}/{trials}"


def _anchor(evaluation: int, stimulus: int, trial: int) -> str:
    return f"e{evaluation}-s{stimulus}-t{trial}"


def _decimals(number: Any) -> str:
    return "–" if number is None else two_decimals(float(number))


def _joined(values: Iterator[str]) -> str:
    return ", ".join(name(text) for text in dict.fromkeys(values)) or "–"
