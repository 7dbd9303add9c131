"""Members that failed asked again, the others as they were recorded."""

from __future__ import annotations

from typing import Any

import pytest

from vally import GraderResult
from vally_grader_panel.config import PanelConfig
from vally_grader_panel.panel import recorded_answers

CRITERIA = [{"name": "a"}, {"name": "b"}]


def member(name: str, *scores: float, error: bool = False) -> GraderResult:
    if error:
        return GraderResult.error("down", name=f"panel/{name}")
    details = [GraderResult.verdict(score > 0.5, "e", score=score, name=str(score)) for score in scores]
    return GraderResult.verdict(True, "e", score=sum(scores) / len(scores), name=f"panel/{name}", details=details)


def config(**keys: Any) -> PanelConfig:
    return PanelConfig.model_validate({"models": ["m1", "m2"], **keys})


def recorded(*members: GraderResult) -> GraderResult:
    return GraderResult.verdict(True, "e", name="panel", details=list(members))


def test_members_with_a_verdict_keep_their_answer() -> None:
    found = recorded_answers(config(), recorded(member("m1", 0.5, 1.0), member("m2", error=True)))
    assert found is not None
    assert list(found) == ["m1"]
    assert (found["m1"].score(config()), found["m1"].criterion_scores) == (0.75, [0.5, 1.0])


@pytest.mark.parametrize(("scores", "fits"), [((0.5, 1.0), True), ((0.5,), False)])
def test_scores_must_fit_the_criteria_of_the_spec(scores: tuple[float, ...], fits: bool) -> None:
    found = recorded_answers(config(criteria=CRITERIA), recorded(member("m1", *scores)))
    assert (found is not None) is fits
