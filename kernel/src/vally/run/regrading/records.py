"""What a re-grading writes down: facts for verdicts, and records with their new grade."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vally.model.jsonio import encode_line, plain_value
from vally.model.results import NO_MODEL, TrialResult, load_trial_result
from vally.model.trajectory import dump_record
from vally.run.recording import redacted_trial
from vally.run.verdicts import TrialFacts

if TYPE_CHECKING:
    from vally.run.redaction import Redactor
    from vally.run.regrading.work import Graded


def trial_of(graded: Graded) -> TrialResult:
    """The result of a document with its new grade, whatever its record tells of itself."""
    item, record = graded.item, graded.record
    identity = {
        "type": "trial-result",
        "runId": item.run_id,
        "itemId": record.get("itemId") or item.item_id,
        "evalName": record.get("evalName") or item.eval_name,
        "evalFilePath": record.get("evalFilePath") or item.eval_file_path,
        "variant": item.variant,
        "model": item.model or NO_MODEL,
        "stimulus": item.stimulus.name,
        "trialIndex": item.trial_index,
        "totalTrials": item.total_trials,
    }
    base = load_trial_result({**record, **identity, "status": graded.assigned.document.status or "success"})
    update: dict[str, Any] = {"trajectory": graded.trajectory, "grade_result": graded.grade}
    if graded.grade is not None:
        update["regraded"] = True
    return base.model_copy(update=update)


def facts_of(graded: Graded, result: TrialResult, *, eval_index: int, threshold: float | None) -> TrialFacts:
    """The facts for verdicts. Trials are numbered as they came, because records of several runs may number alike."""
    from dataclasses import replace

    facts = TrialFacts.from_result(result, threshold, eval_index=eval_index)
    facts = replace(facts, trial_index=graded.assigned.index, stimulus=graded.item.stimulus.name)
    return replace(facts, grader_error=True, nested_error=True) if graded.error is not None else facts


def graded_line(graded: Graded, result: TrialResult, redactor: Redactor) -> bytes:
    """The line of a document with its new grade; everything else of a record stays as it was read.

    A record that could not be graded is passed on unchanged, with the grade it had. Raises `OSError` and `ValueError`
    when the input changed.
    """
    document = graded.assigned.document
    if document.format != "record":
        return _encoded(redacted_trial(result, redactor))
    record = document.value()
    if document.status is not None or graded.error is not None:
        return _encoded(record)
    grade = None
    if graded.grade is not None:
        grade = redactor.value(plain_value(dump_record(graded.grade)).value)
    return _encoded({**record, "gradeResult": grade, "runId": graded.item.run_id, "regraded": True})


def _encoded(record: Mapping[str, Any]) -> bytes:
    try:
        return encode_line(record)
    except RecursionError:
        # What is nested deeper than writers go is written as text.
        return encode_line(plain_value(record).value)
