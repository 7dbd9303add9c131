"""What all answers of the API are made of."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

Ratio = float | None


class Answer(BaseModel):
    """Part of an answer."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class ErrorBody(Answer):
    """What is wrong."""

    code: str
    message: str


class Error(Answer):
    """Every error."""

    error: ErrorBody


class PageInfo(Answer):
    """Where a page ends."""

    next_cursor: str | None
    limit: int
    has_more: bool
    total: int


class Cost(Answer):
    """An amount of `usd` or `aiu`."""

    unit: str
    amount: float
