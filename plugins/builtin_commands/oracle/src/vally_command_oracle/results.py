"""What became of one stimulus, as a record and with the facts that its line tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vally import aggregate_grade, dump_record
from vally_command_oracle.gradable import NO_JUDGE, Gradable, label

if TYPE_CHECKING:
    from vally import EvalSpec, GraderEntry, GraderResult, Stimulus, TrialResult
    from vally_command_oracle.golden import Golden

AS_EXPECTED_ABSENT = "passes, but it asserts an absence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One selected stimulus."""

    spec: EvalSpec
    stimulus: Stimulus
    golden: Golden
    graders: Gradable


@dataclass(slots=True, kw_only=True)
class OracleResult:
    """The outcome of a case. `passed` tells whether it behaves as expected in its mode.

    `failing` and `erring` are graded results, `trivial` those that passed on the baseline, `not_applicable` names with
    reasons. `counted` of `graded` results are as they should be;
    `kept` are all that say something.
    """

    case: Case
    baseline: bool
    trial: TrialResult
    passed: bool = False
    counted: int = 0
    graded: int = 0
    failing: list[tuple[str, GraderResult]] = field(default_factory=list)
    erring: list[tuple[str, GraderResult]] = field(default_factory=list)
    trivial: list[tuple[str, GraderResult]] = field(default_factory=list)
    kept: list[tuple[GraderEntry, GraderResult]] = field(default_factory=list)
    not_applicable: list[tuple[str, str]] = field(default_factory=list)

    def record(self, run_id: str) -> dict[str, Any]:
        """The `oracle-result` record."""
        trial, case = self.trial, self.case
        grade = self._grade()
        record: dict[str, Any] = {
            "type": "oracle-result",
            "runId": run_id,
            "evalName": trial.eval_name,
            "evalFilePath": trial.eval_file_path,
            "stimulus": trial.stimulus,
            "mode": "baseline" if self.baseline else "golden",
            "goldenInput": None if self.baseline else case.golden.kind,
            "status": "success" if trial.status == "success" else "error",
            "passed": self.passed,
            "gradeResult": None if grade is None else dump_record(grade),
            "trivial": [name for name, _ in self.trivial],
            "notApplicable": [name for name, _ in self.not_applicable],
        }
        if trial.status != "success":
            record["error"] = trial.error or trial.skip_reason or "it was not run"
            if trial.error_info is not None:
                record["errorInfo"] = dump_record(trial.error_info)
        return {**record, "workspacePath": trial.workspace_path, "durationMs": trial.duration_ms}

    def _grade(self) -> GraderResult | None:
        """The grade without the results that say nothing here."""
        grade = self.trial.grade_result
        if grade is None or len(self.kept) == len(grade.details or []):
            return grade
        if not self.kept:
            return None
        return aggregate_grade(
            [result for _, result in self.kept],
            [entry for entry, _ in self.kept],
            weights=self.case.spec.scoring.weights,
            stimulus_name=self.trial.stimulus,
            trajectory_id=grade.trajectory_id or "",
            timestamp=grade.timestamp,
        )


def evaluate(case: Case, trial: TrialResult, *, baseline: bool, skip_grade: bool) -> OracleResult:
    """Judge a trial of the golden executor."""
    result = OracleResult(case=case, baseline=baseline, trial=trial)
    result.not_applicable = [(label(entry), reason) for entry, reason in case.graders.others]
    if trial.status != "success":
        return result
    if skip_grade:
        result.passed = True
        return result
    details = (trial.grade_result.details if trial.grade_result else None) or []
    for entry, absence, grade in zip(case.graders.entries, case.graders.absences, details, strict=False):
        _count(result, entry, grade, absence=absence)
    # On a baseline a judge alone leaves nothing to control; without any gradable grader nothing was proven.
    proven = bool(details) or (baseline and bool(result.not_applicable) and _has_judge_only(case))
    result.passed = proven and not (result.failing or result.erring or result.trivial)
    return result


def _has_judge_only(case: Case) -> bool:
    return any(reason == NO_JUDGE for _, reason in case.graders.others)


def _count(result: OracleResult, entry: GraderEntry, grade: GraderResult, *, absence: bool) -> None:
    name = label(entry)
    if result.baseline and absence and grade.passed:
        result.not_applicable.append((name, AS_EXPECTED_ABSENT))
        return
    result.kept.append((entry, grade))
    result.graded += 1
    if grade.status == "error":
        result.erring.append((name, grade))
    elif result.baseline and grade.passed:
        result.trivial.append((name, grade))
    elif not result.baseline and not grade.passed:
        result.failing.append((name, grade))
    else:
        result.counted += 1
