"""Config of `panel`."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from vally import Config, OneOrMore
from vally_grader_panel.aggregation import Aggregation
from vally_grader_prompt import Criterion, JudgedConfig, NotBlank, UnitNumber


class JudgeModel(Config):
    """One judge of the panel."""

    model: NotBlank
    reasoning_effort: NotBlank | None = None


class PanelCriterion(Config):
    """One named criterion; a judge's score is the mean of its criterion scores by `weight`."""

    name: NotBlank
    description: str | None = None
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    pass_threshold: UnitNumber | None = None

    @property
    def criterion(self) -> Criterion:
        """As judges are given it."""
        named = Criterion.of(self.name)
        text = f"{named.text}: {self.description.strip()}" if self.description else named.text
        return Criterion(text, named.name, self.pass_threshold)


def _usable(criteria: list[PanelCriterion]) -> list[PanelCriterion]:
    if not criteria:
        raise ValueError("'criteria' must not be empty")
    name, count = Counter(criterion.name for criterion in criteria).most_common(1)[0]
    if count > 1:
        raise ValueError(f"'criteria' names '{name}' twice")
    if not any(criterion.weight for criterion in criteria):
        raise ValueError("'criteria' must have at least one positive 'weight'")
    return criteria


class PanelConfig(JudgedConfig):
    """Several judges."""

    models: Annotated[list[NotBlank | JudgeModel], OneOrMore]
    aggregation: Aggregation = "mean"
    criteria: Annotated[list[PanelCriterion], AfterValidator(_usable)] | None = None
    overall_threshold: UnitNumber = Field(0.5, deprecated="use 'threshold'")

    @model_validator(mode="after")
    def _check_threshold(self) -> PanelConfig:
        if {"threshold", "overall_threshold"} <= self.model_fields_set:
            raise ValueError("'threshold' and 'overall_threshold' are the same: give one of them")
        return self

    @property
    def limit(self) -> float:
        """The threshold that applies."""
        if "overall_threshold" in self.model_fields_set:
            # Reading the attribute would warn, as the field is deprecated.
            return float(self.__dict__["overall_threshold"])
        return self.threshold

    @property
    def judges(self) -> list[JudgeModel]:
        """The models in their order."""
        return [JudgeModel(model=item) if isinstance(item, str) else item for item in self.models]
