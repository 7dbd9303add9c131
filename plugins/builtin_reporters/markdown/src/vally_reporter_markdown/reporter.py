"""Gathers a few figures while a run goes on, and writes `eval-results.md` from its records at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from vally import atomic_write, index_results, load_trial_result
from vally_reporter_markdown.figures import StimulusFigures
from vally_reporter_markdown.report import Report

if TYPE_CHECKING:
    from vally import PlannedEval, RunComplete, RunStart, RunSummary, TrialDone, TrialResult

FILE_NAME = "eval-results.md"


class MarkdownReporter:
    """Writes the report into the run directory; trials themselves are read back from `results.jsonl`."""

    def __init__(self) -> None:
        self._start: RunStart | None = None
        self._figures: dict[tuple[int, str], StimulusFigures] = {}

    def on_run_start(self, event: RunStart) -> None:
        """Remember what the run is about."""
        self._start = event

    def on_trial_result(self, event: TrialDone) -> None:
        """Count one finished trial."""
        assert self._start is not None
        key = (event.item.eval_index, event.item.stimulus.name)
        figures = self._figures.setdefault(key, StimulusFigures())
        figures.add(event, skip_grade=self._start.options.skip_grade)

    def on_run_complete(self, event: RunComplete) -> dict[str, Path]:
        """Write the report and name it."""
        assert self._start is not None
        path = event.run_dir / FILE_NAME
        lines = self._lines(self._start, event.summary, event.run_dir / "results.jsonl")
        atomic_write(path, "\n".join(lines) + "\n")
        return {"Markdown": path}

    def _lines(self, start: RunStart, summary: RunSummary, results: Path) -> Iterator[str]:
        report = Report(start, summary, self._figures)
        yield from report.head()
        shown = self._shown(results)
        planned = {(item.eval_file_path, item.variant, item.model): item for item in start.evals}
        for item in summary.evals:
            evaluation = planned[(item.eval_file_path, item.variant, item.model)]
            yield from report.section(evaluation, item)
            for result in self._of(evaluation, shown):
                yield from report.trial(result, item.threshold)

    def _shown(self, results: Path) -> dict[str, TrialResult]:
        wanted = {item_id for figures in self._figures.values() for item_id in figures.shown}
        index = index_results(results)
        found = {}
        for entry, raw in zip(index.entries, index.raw_lines(), strict=True):
            if entry.item_id in wanted:
                found[entry.item_id] = _result(raw)
        return found

    def _of(self, planned: PlannedEval, shown: dict[str, TrialResult]) -> Iterator[TrialResult]:
        for stimulus in planned.stimuli:
            figures = self._figures.get((planned.index, stimulus.name))
            results = [shown[item_id] for item_id in figures.shown if item_id in shown] if figures else []
            yield from sorted(results, key=lambda result: result.trial_index)


def _result(raw: bytes) -> TrialResult:
    import json

    result: TrialResult = load_trial_result(json.loads(raw))
    return result
