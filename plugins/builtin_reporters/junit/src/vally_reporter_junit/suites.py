"""One test suite per eval and model: counts and properties, without its test cases."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from junitparser import SystemOut

from vally import es_number, eval_figures, fixed, mean, stimulus_figures, stimulus_stats
from vally_reporter_junit.cases import SUITE_KEYS, grader_scores, one_line, trial_case
from vally_reporter_junit.elements import Case, Report, Suite, number, seconds, xml_text

if TYPE_CHECKING:
    from vally import EvalSummary, PlannedEval, RunStart, TrialResult


class SuiteTally:
    """Counts the trials of an eval while their test cases are made; scores of graders are all that grows."""

    def __init__(self, start: RunStart, planned: PlannedEval) -> None:
        several = len({item.model for item in start.evals}) > 1
        self.planned = planned
        self.name = f"{planned.name} [{planned.model}]" if several else planned.name
        self.counts: Counter[str] = Counter()
        self._start = start
        self._lines = {stimulus.name: stimulus.line for stimulus in planned.stimuli}
        self._scores: dict[str, list[float]] = {}

    def case(self, result: TrialResult) -> Case:
        """The test case of a trial, which is counted."""
        case, kind = trial_case(
            result,
            suite=self.name,
            line=self._lines.get(result.stimulus),
            threshold=self.planned.threshold,
            skip_grade=self._start.options.skip_grade,
        )
        for name, score in grader_scores(result).items():
            self._scores.setdefault(name, []).append(score)
        self.counts.update({"tests": 1, kind: 1, "ms": result.duration_ms})
        return case

    def suite(self) -> Suite:
        """The element with its figures and no children."""
        suite = Suite(xml_text(self.name))
        count(suite, self.counts)
        suite.timestamp = self._start.started_at
        return suite

    def properties(self, summary: EvalSummary | None) -> dict[str, str]:
        """What is known of the eval, then the mean score of each grader over the trials."""
        planned = self.planned
        overall = None if summary is None else summary.overall_score
        own: dict[str, str | None] = {
            "threshold": None if planned.threshold is None else es_number(planned.threshold),
            "model": planned.model,
            "executor": planned.executor,
            "variant": planned.variant,
            "evalFile": planned.eval_file_path,
            "runId": self._start.run_id,
            "passed": None if summary is None else str(summary.passed).lower(),
            "overallScore": None if overall is None else number(overall),
        }
        known = {key: value for key in SUITE_KEYS if (value := own[key])}
        return known | {name: number(mean(scores)) for name, scores in self._scores.items()}


def count(element: Suite | Report, counts: Counter[str]) -> None:
    """Set the figures of a suite or of the whole report."""
    element.tests, element.failures = counts["tests"], counts["failure"]
    element.errors, element.skipped = counts["error"], counts["skipped"]
    element.time = seconds(counts["ms"])


def statistics(summary: EvalSummary | None) -> SystemOut | None:
    """What several trials say of an eval and its stimuli, in a line each; None when nothing was tried twice."""
    if summary is None:
        return None
    lines = []
    for stats in stimulus_stats(summary):
        facts = stimulus_figures(stats)
        if facts and stats.get("flaky"):
            facts.append(f"flaky {fixed(float(stats['flakinessPercent']), 0)}%")
        if facts:
            lines.append(f"{one_line(str(stats['name']))}: {', '.join(facts)}")
    if not lines:
        return None
    return SystemOut("\n".join([*lines, *eval_figures(summary)]))
