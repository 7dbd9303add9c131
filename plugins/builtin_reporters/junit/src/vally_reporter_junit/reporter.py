"""Writes `eval-results.junit.xml` from the records of a finished run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally import atomic_write, index_results, load_trial_result

if TYPE_CHECKING:
    from vally import EvalSummary, PlannedEval, RunComplete, RunStart, TrialResult
    from vally_reporter_junit.elements import Suite

FILE_NAME = "eval-results.junit.xml"
Key = tuple[str | None, str | None, str | None]


class JunitReporter:
    """Keeps nothing while the run goes on; one test suite per eval and model, one test case per trial."""

    def __init__(self) -> None:
        self._start: RunStart | None = None

    def on_run_start(self, event: RunStart) -> None:
        """Remember what the run is about."""
        self._start = event

    def on_run_complete(self, event: RunComplete) -> dict[str, Path]:
        """Write the report and name it."""
        assert self._start is not None
        path = event.run_dir / FILE_NAME
        atomic_write(path, _document(self._start, event))
        return {"JUnit": path}


def _document(start: RunStart, event: RunComplete) -> bytes:
    from vally_reporter_junit.elements import Report, document, seconds

    report = Report("vally")
    suites = {_planned_key(item): _SuiteBuilder(start, item) for item in start.evals}
    summaries = {_summary_key(item): item for item in event.summary.evals}
    for result in _results(event.run_dir / "results.jsonl"):
        builder = suites.get((result.eval_file_path, result.variant, result.model))
        if builder is not None:
            builder.add(result)
    counts: Counter[str] = Counter()
    for key, builder in suites.items():
        report.add_testsuite(builder.finish(summaries.get(key)))
        counts += builder.counts
    report.tests, report.failures = counts["tests"], counts["failure"]
    report.errors, report.skipped = counts["error"], counts["skipped"]
    report.time = seconds(counts["ms"])
    return document(report)


def _planned_key(item: PlannedEval) -> Key:
    return item.eval_file_path, item.variant, item.model


def _summary_key(item: EvalSummary) -> Key:
    return item.eval_file_path, item.variant, item.model


def _results(path: Path) -> Iterator[TrialResult]:
    for raw in index_results(path).raw_lines():
        yield load_trial_result(json.loads(raw))


class _SuiteBuilder:
    def __init__(self, start: RunStart, planned: PlannedEval) -> None:
        several = len({item.model for item in start.evals}) > 1
        self._start = start
        self._planned = planned
        self._name = f"{planned.name} [{planned.model}]" if several else planned.name
        self._cases: list[tuple[int, int, Any]] = []
        self._places = {stimulus.name: index for index, stimulus in enumerate(planned.stimuli)}
        self._lines = {stimulus.name: stimulus.line for stimulus in planned.stimuli}
        self._scores: dict[str, list[float]] = {}
        self.counts: Counter[str] = Counter()

    def add(self, result: TrialResult) -> None:
        """Add the test case of a trial."""
        from vally_reporter_junit.cases import grader_scores, trial_case

        case, kind = trial_case(
            result,
            suite=self._name,
            line=self._lines.get(result.stimulus),
            threshold=self._planned.threshold,
            skip_grade=self._start.options.skip_grade,
        )
        self._cases.append((self._places.get(result.stimulus, 0), result.trial_index, case))
        for name, score in grader_scores(result).items():
            self._scores.setdefault(name, []).append(score)
        self.counts.update({"tests": 1, kind: 1, "ms": result.duration_ms})

    def finish(self, summary: EvalSummary | None) -> Suite:
        """The suite with its figures, properties and cases in plan order."""
        from vally_reporter_junit.elements import Suite, add, properties, seconds, xml_text

        suite = Suite(xml_text(self._name))
        counts = self.counts
        suite.tests, suite.failures = counts["tests"], counts["failure"]
        suite.errors, suite.skipped = counts["error"], counts["skipped"]
        suite.time = seconds(counts["ms"])
        suite.timestamp = self._start.started_at
        add(suite, properties(self._properties(summary)))
        for _, _, case in sorted(self._cases, key=lambda entry: entry[:2]):
            add(suite, case)
        return suite

    def _properties(self, summary: EvalSummary | None) -> dict[str, str]:
        from vally_reporter_junit.elements import number

        planned = self._planned
        own: dict[str, str | None] = {
            "threshold": None if planned.threshold is None else number(planned.threshold),
            "model": planned.model,
            "executor": planned.executor,
            "variant": planned.variant,
            "evalFile": planned.eval_file_path,
            "runId": self._start.run_id,
            "passed": None if summary is None else str(summary.passed).lower(),
            "overallScore": None if summary is None or summary.overall_score is None else number(summary.overall_score),
        }
        values = {name: value for name, value in own.items() if value is not None}
        for name, scores in self._scores.items():
            values[f"grader:{name}" if name in own else name] = number(sum(scores) / len(scores))
        return values
