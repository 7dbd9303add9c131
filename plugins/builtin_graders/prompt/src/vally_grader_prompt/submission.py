"""The tool by which a judge hands in its grade, and what makes a call of it valid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vally import ToolSchema
from vally_grader_prompt.criteria import Criterion
from vally_grader_prompt.scales import Scale

M = TypeVar("M", bound=BaseModel)
Check = Callable[[Mapping[str, object]], str | None]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Arguments(BaseModel):
    """Arguments of a call: exactly these keys, no coercion."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class CriterionScore(Arguments):
    """The score of one criterion, on the scale as submitted."""

    criterion: str
    score: Finite
    reasoning: str


class SubmittedGrade(Arguments):
    """The arguments of `submit_grade`."""

    rubric_scores: list[CriterionScore]
    overall_score: Finite
    overall_reasoning: str


def object_schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """JSON Schema of an object with exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def grade_tool(scale: Scale) -> ToolSchema:
    """The tool `submit_grade`."""
    score = {"type": "number", "description": scale.description}
    reasoning = {"type": "string", "description": "Why, with reference to the evidence."}
    item = object_schema(
        criterion={"type": "string", "description": "The text of the criterion."}, score=score, reasoning=reasoning
    )
    return ToolSchema(
        name="submit_grade",
        description="Hand in the grade. Call this exactly once.",
        parameters=object_schema(
            rubric_scores={"type": "array", "items": item, "description": "One item per criterion, in their order."},
            overall_score=score,
            overall_reasoning=reasoning,
        ),
    )


def grade_check(criteria: Sequence[Criterion], scale: Scale) -> Check:
    """A function that returns what is wrong with the arguments of a call, or None."""

    def check(args: Mapping[str, object]) -> str | None:
        grade = parsed(SubmittedGrade, args)
        if isinstance(grade, str):
            return grade
        if len(grade.rubric_scores) != len(criteria):
            return wrong_count("rubric_scores", len(criteria), len(grade.rubric_scores))
        scores = [(f"rubric_scores[{i}].score", item.score) for i, item in enumerate(grade.rubric_scores)]
        for key, score in [*scores, ("overall_score", grade.overall_score)]:
            problem = scale.problem(score)
            if problem is not None:
                return f"{key} {problem}"
        return None

    return check


def wrong_count(key: str, wanted: int, found: int) -> str:
    """The problem of a list that has not one item per criterion."""
    return f"{key} must have one item per criterion, {wanted} in all, not {found}"


def parsed(model: type[M], args: Mapping[str, object]) -> M | str:
    """The arguments as a model, or what is wrong with them."""
    try:
        return model.model_validate(dict(args))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
        message = str(first["msg"])
        return f"{key}: {message[:1].lower()}{message[1:]}"
