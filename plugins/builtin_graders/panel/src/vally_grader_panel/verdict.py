"""The result of a panel from the answers of its judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vally import GraderResult, two_decimals
from vally_grader_panel.aggregation import aggregate
from vally_grader_panel.answers import Answer, RecordedAnswer
from vally_grader_panel.config import PanelConfig
from vally_grader_prompt import Grade, JudgeFailed

KEYWORD = "panel"


def panel_result(config: PanelConfig, answers: Sequence[Answer | RecordedAnswer]) -> GraderResult:
    """The aggregate over the judges that answered; an error when none did."""
    details = [answer.result(config, f"{KEYWORD}/{answer.label}") for answer in answers]
    scores = {answer.label: score for answer in answers if (score := answer.score(config)) is not None}
    failed = {answer.label: answer.failure for answer in answers if answer.failure is not None}
    metadata = _metadata(config, scores)
    if not scores:
        return _all_failed(failed, metadata).model_copy(update={"details": details})
    value, passed = aggregate(config.aggregation, list(scores.values()), config.limit)
    missed = _missed_criteria(config, [answer.grade for answer in answers if answer.grade is not None])
    if missed or (failed and config.aggregation == "unanimous"):
        passed = False
    return GraderResult.verdict(
        passed,
        _evidence(config, passed, scores, value, list(failed), missed),
        score=value,
        name=KEYWORD,
        kind="llm",
        metadata=metadata,
        details=details,
    )


def _metadata(config: PanelConfig, scores: dict[str, float]) -> dict[str, Any]:
    return {
        "aggregation": config.aggregation,
        "scores": scores,
        **({"spread": max(scores.values()) - min(scores.values())} if scores else {}),
        "threshold": config.limit,
        "evidence": list(config.kinds),
    }


def _all_failed(failed: dict[str, JudgeFailed], metadata: dict[str, Any]) -> GraderResult:
    errors = "; ".join(f"{label}: {failure.message}" for label, failure in failed.items())
    return JudgeFailed(f"All {len(failed)} panel judges failed: {errors}").result(KEYWORD, metadata)


def _missed_criteria(config: PanelConfig, grades: Sequence[Grade | RecordedAnswer]) -> list[str]:
    """The criteria whose aggregate misses their own threshold, with both numbers."""
    missed = []
    for index, criterion in enumerate(config.criteria or ()):
        limit = criterion.pass_threshold
        if limit is None:
            continue
        value, reached = aggregate(config.aggregation, [grade.criterion_scores[index] for grade in grades], limit)
        if not reached:
            wanted = "majority" if config.aggregation == "majority" else two_decimals(limit)
            missed.append(f"{criterion.name} {two_decimals(value)} misses {wanted}")
    return missed


def _evidence(
    config: PanelConfig,
    passed: bool,
    scores: dict[str, float],
    value: float,
    failed: Sequence[str],
    missed: Sequence[str],
) -> str:
    shown = ", ".join(f"{label}={two_decimals(score)}" for label, score in scores.items())
    line = (
        f"{'PASS' if passed else 'FAIL'} via {config.aggregation} aggregation across {len(scores)} judge(s): "
        f"{shown} → {two_decimals(value)}"
    )
    if failed:
        line += f" ({len(failed)} judge(s) failed: {', '.join(failed)})"
    if missed:
        line += f" (criteria missed: {', '.join(missed)})"
    return line
