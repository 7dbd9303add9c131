"""The trial records of a results file: where each lies and the little that selections and verdicts need of it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.model.results import NO_MODEL
from vally.run.planned_scoring import PlannedScoring, planned_scoring

if TYPE_CHECKING:
    from vally.model.results import RunSummary
    from vally.run.results_file import ReadProblem


@dataclass(frozen=True, slots=True)
class TrialEntry:
    """One trial: its place in the file, its names, and the facts of its verdict.

    `trial_index` counts from 0. `graders` is the number of results at the top level; `score` (0..1) and `passed` are
    those of the aggregate, None without a grade.
    """

    offset: int
    length: int
    eval_name: str
    eval_file: str
    variant: str
    model: str
    stimulus: str
    trial_index: int
    total: int
    status: str
    graders: int
    score: float | None
    passed: bool | None
    required_passed: bool
    grader_error: bool

    @property
    def plan(self) -> tuple[str, str, str]:
        """What a threshold belongs to: eval file, variant, model."""
        return self.eval_file, self.variant, self.model

    def verdict(self, threshold: float | None) -> str:
        """`pass`, `fail`, `error`, `skipped` or `not graded`."""
        if self.status != "success":
            return self.status
        if self.passed is None or self.score is None:
            return "not graded"
        from vally.model.results import GraderResult
        from vally.run.scoring import resolve_grade_pass

        # Only what decides; the details were left in the file.
        grade = GraderResult.model_construct(
            passed=self.passed,
            score=self.score,
            status="error" if self.grader_error else None,
            metadata={"requiredPassed": self.required_passed},
        )
        passed = resolve_grade_pass(grade, threshold)
        return "error" if passed is None else "pass" if passed else "fail"


@dataclass(slots=True)
class StoredTrials:
    """The readable trials of one results file, in the order of the file; of several with one id the last counts.

    `summary` is the last run summary; None for a run that goes on or was killed, of which `planned` tells what it is to
    reach. `problems` are lines that are no records, `others` counts records of other kinds.
    """

    path: Path
    entries: list[TrialEntry] = field(default_factory=list)
    summary: RunSummary | None = None
    problems: list[ReadProblem] = field(default_factory=list)
    others: int = 0
    planned: dict[tuple[str, str], PlannedScoring] = field(default_factory=dict)

    def scoring(self) -> dict[tuple[str, str, str], PlannedScoring]:
        """What evals are to reach by eval file, variant and model, as far as summary or manifest tell it."""
        if self.summary is not None:
            return {
                (item.eval_file_path, item.variant, item.model): PlannedScoring(item.threshold, item.required_pass_rate)
                for item in self.summary.evals
            }
        plans = dict.fromkeys(entry.plan for entry in self.entries)
        return {plan: self.planned[plan[:2]] for plan in plans if plan[:2] in self.planned}

    def thresholds(self) -> dict[tuple[str, str, str], float | None]:
        """The thresholds of `scoring`."""
        return {plan: scoring.threshold for plan, scoring in self.scoring().items()}

    def verdict_of(self, entry: TrialEntry) -> str:
        """The verdict of a trial under the threshold of its eval."""
        return entry.verdict(self.thresholds().get(entry.plan))

    def records(self, entries: Iterable[TrialEntry]) -> Iterator[tuple[TrialEntry, dict[str, Any]]]:
        """The whole records of some trials, one at a time."""
        from vally.model.jsonio import parse_json

        with self.path.open("rb") as file:
            for entry in entries:
                file.seek(entry.offset)
                yield entry, parse_json(file.read(entry.length))


def read_trials(path: Path) -> StoredTrials:
    """Read a results file once, line by line. Raises `OSError`."""
    from vally.run.results_file import read_lines

    found = StoredTrials(path)
    entries: dict[int | str, TrialEntry] = {}
    seen: Counter[tuple[str, str]] = Counter()
    with path.open("rb") as file:
        for line in read_lines(file, found.problems):
            kind = line.record.get("type")
            if kind == "run-summary":
                _take_summary(found, line.record, line.line)
            elif kind == "trial-result" or (kind is None and "trajectory" in line.record):
                entry = _entry(line.record, line.offset, len(line.raw), seen)
                item_id = line.record.get("itemId")
                # Ids are long and many; their hashes tell them apart. What has none cannot replace another.
                entries[hash(item_id) if isinstance(item_id, str) and item_id else f"line {line.line}"] = entry
            else:
                found.others += 1
    found.entries = list(entries.values())
    if found.summary is None and found.entries:
        found.planned = planned_scoring(path)
    return found


def _take_summary(found: StoredTrials, record: dict[str, Any], line: int) -> None:
    from vally.model.results import load_run_summary
    from vally.model.trajectory import RecordError
    from vally.run.results_file import ReadProblem

    try:
        found.summary = load_run_summary(record)
    except RecordError as error:
        found.problems.append(ReadProblem(code="bad-record", line=line, message=f"run summary: {error.message}"))


def _entry(record: dict[str, Any], offset: int, length: int, seen: Counter[tuple[str, str]]) -> TrialEntry:
    from vally.model.results import stimulus_name

    stimulus, model = _text(stimulus_name(record)), _text(record.get("model")) or NO_MODEL
    index, total = record.get("trialIndex"), record.get("totalTrials")
    appearance = seen[stimulus, model]
    seen[stimulus, model] += 1
    grade = record.get("gradeResult")
    grade = grade if isinstance(grade, dict) and isinstance(grade.get("passed"), bool) else {}
    passed = grade.get("passed")
    score, details, metadata = grade.get("score"), grade.get("details"), grade.get("metadata")
    status = record.get("status")
    return TrialEntry(
        offset=offset,
        length=length,
        eval_name=_text(record.get("evalName")),
        eval_file=_text(record.get("evalFilePath")),
        variant=_text(record.get("variant")) or "main",
        model=model,
        stimulus=stimulus,
        trial_index=index if type(index) is int and index >= 0 else appearance,
        total=total if type(total) is int and total > 0 else 1,
        status=sys.intern(status) if status in ("error", "skipped") else "success",
        graders=len(details) if isinstance(details, list) else 0,
        score=_score(score, passed),
        passed=passed,
        required_passed=not (isinstance(metadata, dict) and metadata.get("requiredPassed") is False),
        grader_error=grade.get("status") == "error",
    )


def _score(value: Any, passed: bool | None) -> float | None:
    if type(value) in (int, float):
        return float(value)
    return None if passed is None else float(passed)


def _text(value: object) -> str:
    # The same few names stand in every record.
    return sys.intern(value) if isinstance(value, str) else ""
