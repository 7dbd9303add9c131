"""Grading as a library: a recorded or hand-made trajectory, grader entries, one call."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from vally import GraderInput, GraderResult, GraderSpec, PluginHost, Trajectory, agrade_trajectory, grade_trajectory


class Says:
    made = 0

    def __init__(self) -> None:
        Says.made += 1

    def grade(self, input: GraderInput[object]) -> GraderResult:
        return GraderResult.verdict("yes" in input.trajectory.output, input.trajectory.output)


def host() -> PluginHost:
    return PluginHost.from_objects(GraderSpec(name="says-yes", summary="says yes", factory=Says))


def test_the_same_graders_are_prepared_once_per_host() -> None:
    Says.made = 0
    shared = host()

    async def many() -> list[bool]:
        return [
            (await agrade_trajectory(Trajectory(output=text), [{"type": "says-yes"}], host=shared)).passed
            for text in ("yes", "no", "yes!") * 5
        ]

    assert anyio.run(many) == [True, False, True] * 5
    assert Says.made == 1


def test_weights_and_requirements_of_entries_count() -> None:
    graders = [{"type": "says-yes", "weight": 3, "name": "first"}, {"type": "says-yes", "required": True}]
    grade = grade_trajectory(Trajectory(output="yes"), graders, host=host())
    assert (grade.passed, grade.score) == (True, 1)
    assert grade.metadata == {"requiredPassed": True, "weights": {"first": 3, "says-yes": 1}}


@pytest.mark.parametrize(
    ("graders", "message"),
    [([], "must not be empty"), ([{"kind": "x"}], "with a 'type'"), ([{"type": "says-yes", "wight": 1}], "'wight'")],
)
def test_entries_that_cannot_be_graded(graders: list[dict[str, object]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        grade_trajectory(Trajectory(), graders, host=host())


def test_an_unknown_type_is_an_error_result(tmp_path: Path) -> None:
    grade = grade_trajectory(Trajectory(work_dir=str(tmp_path)), [{"type": "says-no"}], host=host())
    assert grade.status == "error"
    assert grade.details is not None
    assert "says-no" in grade.details[0].evidence
