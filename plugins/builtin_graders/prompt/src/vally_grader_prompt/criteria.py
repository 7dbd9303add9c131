"""What judges score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from vally import sanitise


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing to score: the text that the judge reads, the name of its result, and its own threshold if any."""

    text: str
    name: str
    limit: float | None = None

    @classmethod
    def of(cls, text: str) -> Criterion:
        """A criterion that is named by its text."""
        return cls(text.strip(), sanitise(text))


DEFAULT_CRITERIA = (
    Criterion.of("The agent did what the task asks, completely and correctly."),
    Criterion.of("The result is clear, well organised and contains no false claims."),
)
NO_RUBRIC = "no rubric; the default criteria are used"


def rubric_criteria(rubric: Iterable[str]) -> tuple[Criterion, ...]:
    """The criteria of a rubric; empty without one."""
    return tuple(Criterion.of(item) for item in rubric if item.strip())


class HasCriterion(Protocol):
    """An item of a judge's answer."""

    @property
    def criterion(self) -> str: ...


T = TypeVar("T", bound=HasCriterion)


def paired(criteria: Sequence[Criterion], items: Sequence[T]) -> list[T]:
    """The items of an answer in the order of the criteria: by equal text when all are found, else as they are."""
    left = list(items)
    found: list[T] = []
    for criterion in criteria:
        index = next((i for i, item in enumerate(left) if item.criterion.strip() == criterion.text), None)
        if index is None:
            return list(items)
        found.append(left.pop(index))
    return found
