"""The tool by which a judge hands in a comparison, and what makes a call of it valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from vally import ToolSchema
from vally_grader_prompt.criteria import Criterion
from vally_grader_prompt.outcomes import Verdict
from vally_grader_prompt.submission import Arguments, Check, object_schema, parsed, wrong_count


class CriterionVerdict(Arguments):
    """The verdict on one criterion."""

    criterion: str
    verdict: Verdict
    reasoning: str


class SubmittedComparison(Arguments):
    """The arguments of `submit_comparison`."""

    criteria: list[CriterionVerdict]
    overall_verdict: Verdict
    overall_reasoning: str


def comparison_tool() -> ToolSchema:
    """The tool `submit_comparison`."""
    verdict = {"type": "string", "enum": list(get_args(Verdict))}
    reasoning = {"type": "string", "description": "Why, with reference to the evidence of both."}
    item = object_schema(
        criterion={"type": "string", "description": "The text of the criterion."}, verdict=verdict, reasoning=reasoning
    )
    return ToolSchema(
        name="submit_comparison",
        description="Hand in the comparison. Call this exactly once.",
        parameters=object_schema(
            criteria={"type": "array", "items": item, "description": "One item per criterion, in their order."},
            overall_verdict=verdict,
            overall_reasoning=reasoning,
        ),
    )


def comparison_check(criteria: Sequence[Criterion]) -> Check:
    """A function that returns what is wrong with the arguments of a call, or None."""

    def check(args: Mapping[str, object]) -> str | None:
        comparison = parsed(SubmittedComparison, args)
        if isinstance(comparison, str):
            return comparison
        found = len(comparison.criteria)
        return None if found == len(criteria) else wrong_count("criteria", len(criteria), found)

    return check
