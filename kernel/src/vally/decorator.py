"""The `@grader` decorator: a grader from one function, for plugins of a single file."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vally.records import GraderSpec

if TYPE_CHECKING:
    from pydantic import BaseModel


class _FunctionGrader:
    """The object whose `grade` method is the decorated function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.grade = function


def grader(
    name: str, *, config: str | type[BaseModel] | None = None, summary: str | None = None, **fields: Any
) -> Callable[[Callable[..., Any]], GraderSpec]:
    """Replace a function `(input) -> GraderResult`, or a class with a `grade` method, by its `GraderSpec`.

    The record can still be called like what it decorates. `summary` defaults to the first line of the docstring;
    `fields` are those of `GraderSpec`.
    """

    def decorate(target: Callable[..., Any]) -> GraderSpec:
        if isinstance(target, type):
            factory: Callable[[], object] = target
        else:
            factory = lambda: _FunctionGrader(target)  # noqa: E731  # a closure is the whole factory
        line = summary if summary is not None else _first_line(target)
        return GraderSpec(name=name, summary=line or name, factory=factory, config=config, function=target, **fields)

    return decorate


def _first_line(target: object) -> str:
    lines = (inspect.getdoc(target) or "").strip().splitlines()
    return lines[0].strip().removesuffix(".") if lines else ""
