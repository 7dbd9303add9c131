"""Configs of graders that ask judges."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from vally import Config
from vally_grader_prompt.scales import SCALES, Scale, ScaleName

EvidenceKind = Literal["trajectory", "diff", "golden_patch", "repo"]


def _not_blank(value: str, info: ValidationInfo) -> str:
    if not value.strip():
        raise ValueError(f"'{info.field_name}' must not be blank")
    return value


def _distinct(kinds: tuple[str, ...]) -> tuple[str, ...]:
    if not kinds:
        raise ValueError("'evidence' must not be empty")
    twice = next((kind for kind in kinds if kinds.count(kind) > 1), None)
    if twice is not None:
        raise ValueError(f"'evidence' names '{twice}' twice")
    return kinds


def _former_delivery(value: Any) -> str:
    if value != "workspace":
        raise ValueError("'output_delivery' must be left out: evidence is always delivered as files")
    return "workspace"


NotBlank = Annotated[str, AfterValidator(_not_blank)]
"""A string that does not consist of blanks."""

UnitNumber = Annotated[float, Field(ge=0, le=1)]
"""A number from 0 to 1."""


class JudgedConfig(Config):
    """What every judge of a grader is given."""

    prompt: str | None = None
    reasoning_effort: NotBlank | None = None
    scoring: ScaleName = "scale_1_5"
    threshold: UnitNumber = 0.5
    kinds: Annotated[tuple[EvidenceKind, ...], AfterValidator(_distinct)] = Field(("trajectory",), alias="evidence")
    output_delivery: Annotated[str, BeforeValidator(_former_delivery, json_schema_input_type=Literal["workspace"])] = (
        Field("workspace", deprecated="leave it out: evidence is always delivered as files")
    )

    @property
    def scale(self) -> Scale:
        """The scale of `scoring`."""
        return SCALES[self.scoring]

    @property
    def limit(self) -> float:
        """The threshold that applies."""
        return self.threshold

    @property
    def instructions(self) -> str | None:
        """`prompt`, unless it is blank."""
        return self.prompt if self.prompt and self.prompt.strip() else None

    def evidence(self) -> frozenset[str]:
        """What the run must record for it."""
        return frozenset(self.kinds) - {"trajectory"}

    def oracle(self) -> str:
        """Golden input with which `vally oracle` can grade it."""
        return "trajectory" if "trajectory" in self.kinds else "state"


class PromptConfig(JudgedConfig):
    """One judge."""

    model: NotBlank | None = None
