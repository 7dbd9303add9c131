"""The text of `eval-results.md`, made line by line from the summary of a run and its records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vally import RunRecords, stimulus_stats
from vally_reporter_markdown.figures import StimulusFigures
from vally_reporter_markdown.sections import eval_head, head, trial_section
from vally_reporter_markdown.tables import stimulus_table

if TYPE_CHECKING:
    from pathlib import Path

    from vally import EvalSummary, PlannedEval, RunStart, RunSummary


def report_lines(start: RunStart, summary: RunSummary, results: Path) -> Iterator[str]:
    """The lines of the report. Raises `OSError` when the records cannot be read."""
    records = RunRecords(results)
    planned = {(item.eval_file_path, item.variant, item.model): item for item in start.evals}
    yield from head(start, summary)
    for item in summary.evals:
        evaluation = planned.get((item.eval_file_path, item.variant, item.model))
        if evaluation is not None:
            yield from _eval_lines(start, evaluation, item, records)


def _eval_lines(start: RunStart, planned: PlannedEval, item: EvalSummary, records: RunRecords) -> Iterator[str]:
    threshold, options = planned.threshold, start.options
    figures = {
        stimulus.name: StimulusFigures.over(records.of(planned, stimulus.name), threshold, verbose=options.verbose)
        for stimulus in planned.stimuli
    }
    yield from eval_head(item)
    nothing = StimulusFigures()
    rows = ((stats, figures.get(str(stats.get("name")), nothing)) for stats in stimulus_stats(item))
    yield from stimulus_table(rows, skip_grade=options.skip_grade)
    for name, numbers in figures.items():
        # Records are read a second time rather than kept: the agent's output may be long.
        for result in records.of(planned, name) if numbers.shown else ():
            if result.trial_index in numbers.shown:
                yield from trial_section(result, threshold)
