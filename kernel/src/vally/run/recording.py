"""From a trial result in memory to its record: plain JSON, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vally.model.jsonio import not_finite_warnings, plain_value
from vally.model.metrics import compute_metrics
from vally.model.results import TrialResult, add_warnings, ordered_record
from vally.model.trajectory import RecordModel, Trajectory, dump_record
from vally.run.redaction import redact_environment_maps

if TYPE_CHECKING:
    from vally.run.redaction import Redactor


def redacted_trial(result: TrialResult, redactor: Redactor) -> dict[str, Any]:
    """The record of a result as it may be written, not yet within the size limits; the result stays as it is.

    Error texts and warnings also lose what looks like a credential; `redactions` counts the known values replaced in
    the trajectory.
    """
    warnings: list[str] = []
    plain = plain_value(_with_metrics(result, warnings))
    record: dict[str, Any] = plain.value
    warnings += not_finite_warnings(plain.not_finite)
    if warnings:
        record = add_warnings(record, warnings)
    trajectory = record.pop("trajectory")
    clean: dict[str, Any] = redactor.value(record)
    for key in ("error", "skipReason", "errorInfo", "warnings"):
        if key in clean:
            clean[key] = _without_patterns(clean[key], redactor)
    clean["trajectory"] = None if trajectory is None else _redacted_trajectory(trajectory, redactor)
    return ordered_record(TrialResult, clean)


def _with_metrics(result: TrialResult, warnings: list[str]) -> TrialResult:
    trajectory = result.trajectory
    if trajectory is None:
        return result
    computed = compute_metrics(trajectory.events, warnings)
    if trajectory.metrics is not None:
        return result
    return result.model_copy(update={"trajectory": trajectory.model_copy(update={"metrics": computed})})


def _redacted_trajectory(trajectory: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    stimulus = redact_environment_maps(trajectory.get("stimulus"))
    clean, count = redactor.count_value({**trajectory, "stimulus": stimulus})
    if count:
        before = clean.get("redactions")
        clean["redactions"] = count + (before if isinstance(before, int) else 0)
    return ordered_record(Trajectory, clean)


def _without_patterns(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str):
        return redactor.console(value)
    if isinstance(value, Mapping):
        return {key: _without_patterns(item, redactor) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_patterns(item, redactor) for item in value]
    return value


def redacted_record(model: RecordModel, redactor: Redactor) -> dict[str, Any]:
    """Any other record, such as a run summary, as it may be written."""
    clean: dict[str, Any] = redactor.value(plain_value(dump_record(model)).value)
    return clean
