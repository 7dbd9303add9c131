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


def test_an_unknown_type_tells_what_to_write_instead() -> None:
    grade = grade_trajectory(Trajectory(), [{"type": "say-yes"}], host=host())
    assert grade.details is not None
    assert grade.details[0].evidence == "unknown grader type 'say-yes'; did you mean 'says-yes'?"


BAD_FIELDS = {
    "name": (5, "'name' must be a string that is not blank"),
    "turn": (True, "'turn' must be an integer >= 0"),
    "scope": ({"agents": "x"}, "'scope' must be all, main, subagents, an agent name or {agent: name or list of names}"),
    "required": ("no", "'required' must be true or false"),
    "weight": (float("nan"), "'weight' must be a number >= 0"),
}


@pytest.mark.parametrize("field", BAD_FIELDS)
def test_a_field_that_cannot_be_understood_is_an_error_and_no_verdict(field: str) -> None:
    value, problem = BAD_FIELDS[field]
    entries = [{"type": "says-yes"}, {"type": "says-yes", field: value}]
    grade = grade_trajectory(Trajectory(output="yes"), entries, host=host())
    assert grade.details is not None
    fine, wrong = grade.details
    assert (fine.passed, wrong.status) == (True, "error")
    assert wrong.evidence == f"Invalid config for says-yes: {problem}"


@pytest.mark.parametrize(
    "fields",
    [
        {"turn": None, "scope": "all", "name": "a", "required": True, "weight": 0},
        {"turn": None, "scope": None, "name": None, "required": None, "weight": None},
        {"scope": "all", "weight": 2.5},
    ],
)
def test_fields_that_can(fields: dict[str, object]) -> None:
    grade = grade_trajectory(Trajectory(output="yes"), [{"type": "says-yes", **fields}], host=host())
    assert grade.passed


def test_a_name_belongs_to_one_entry() -> None:
    entries = [{"type": "says-yes", "name": "same"}] * 2
    with pytest.raises(ValueError, match="'same' occurs twice"):
        grade_trajectory(Trajectory(), entries, host=host())
