"""`token-budget`, `turn-count` and `error-count`: numbers that the metrics of the view hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from pydantic import Field

from vally import Config, GraderInput, GraderResult, Metrics
from vally_grader_metrics.budget import grade_count


class CountConfig(Config):
    """The largest number allowed."""

    max: int = Field(ge=0)


class MetricCount(ABC):
    """Compares one metric with the limit. Subclasses say which, and how evidence calls it."""

    keyword: ClassVar[str]
    noun: ClassVar[str]

    def grade(self, input: GraderInput[CountConfig]) -> GraderResult:
        metrics = input.trajectory.metrics
        value = None if metrics is None else self.value(metrics)
        return grade_count(self.keyword, value, input.config.max, self.noun)

    def default_name(self, config: CountConfig) -> str:
        return f"{self.keyword} {config.max}"

    def asserts_absence(self, config: CountConfig) -> bool:
        return True

    @abstractmethod
    def value(self, metrics: Metrics) -> int | None:
        """The number, or None when it was not recorded."""


class TokenBudget(MetricCount):
    """Input and output tokens; those of caches are not added."""

    keyword = "token-budget"
    noun = "tokens"

    def value(self, metrics: Metrics) -> int | None:
        usage = metrics.token_usage
        return None if usage is None else usage.input_tokens + usage.output_tokens


class TurnCount(MetricCount):
    """Responses of the agent."""

    keyword = "turn-count"
    noun = "turns"

    def value(self, metrics: Metrics) -> int | None:
        return metrics.turn_count


class ErrorCount(MetricCount):
    """Error events."""

    keyword = "error-count"
    noun = "errors"

    def value(self, metrics: Metrics) -> int | None:
        return metrics.error_count
