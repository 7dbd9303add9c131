"""Config of `custom-metrics`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from vally import Config, NonEmpty, WorkspaceGlob, compact_json

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Assertion(Config):
    """What one metric must be: equal to a value, or a number within inclusive bounds."""

    metric: NonEmpty
    equals: bool | Finite | str | None = None
    min: Finite | None = None
    max: Finite | None = None

    def problem(self) -> str | None:
        """What is wrong with the operators taken together."""
        bounds = [bound for bound in (self.min, self.max) if bound is not None]
        if self.equals is None and not bounds:
            return "needs 'equals', 'min' or 'max'"
        if self.equals is not None and bounds:
            return "cannot have 'equals' beside 'min' or 'max'"
        return "must have a 'min' of at most its 'max'" if bounds != sorted(bounds) else None

    @property
    def expected(self) -> str:
        """The operators, as evidence shows them."""
        operators = [("equals", self.equals), ("min", self.min), ("max", self.max)]
        return ", ".join(f"{name} {compact_json(value)}" for name, value in operators if value is not None)


class CustomMetricsConfig(Config):
    """A file of the artifacts or the workspace, and at least one assertion about it."""

    path: WorkspaceGlob = "custom_metrics.json"
    assertions: Annotated[list[Assertion], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_operators(self) -> CustomMetricsConfig:
        for index, assertion in enumerate(self.assertions):
            problem = assertion.problem()
            if problem is not None:
                raise ValueError(f"'assertions[{index}]' {problem}")
        return self
