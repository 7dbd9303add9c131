"""Each field of a record is checked, or known to be checked elsewhere."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from vally.record_facts import CHECKED_CONSTRAINTS, fact_problems
from vally.records import KINDS
from vally.spec.constraints import CONSTRAINTS

ELSEWHERE = {"name", "summary", "factory", "config", "function"}
"""Names, factories, config models and functions have checks with words of their own."""


class Anything:
    """A value that fits no plain annotation."""


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_plain_field_has_a_rule(kind: Any) -> None:
    plain = [field.name for field in fields(kind.record) if field.name not in ELSEWHERE]
    record = kind.record(name="x", summary="y", factory="m:F", **{name: Anything() for name in plain})
    said = [problem.split()[0] for problem in fact_problems(record)]
    assert said == plain


def test_every_constraint_but_the_limit_of_executors_is_checked_by_a_grader() -> None:
    assert [key for key in CONSTRAINTS.keys if key != "max_agent_duration"] == list(CHECKED_CONSTRAINTS)
