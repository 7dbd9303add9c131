"""Config of `tool-calls`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from vally import Config
from vally_grader_tool_calls.tool_match import ToolMatch

_REQUIRED_ONLY = frozenset({"min_count", "final", "at_step", "before_step"})
_NOT_ALLOWED = {
    "required": frozenset[str](),
    "disallowed": _REQUIRED_ONLY,
    "sequence": _REQUIRED_ONLY | {"result"},
    "parallel": _REQUIRED_ONLY,
}


def _as_mappings(value: Any, info: ValidationInfo) -> Any:
    """A string among the items is short for a mapping with that name."""
    if not isinstance(value, list):
        return value
    items = [{"name": item} if isinstance(item, str) else item for item in value]
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise ValueError(f"'{info.field_name}[{index}]' must be a string or a mapping")
    return items


Entries = Annotated[list[ToolMatch], BeforeValidator(_as_mappings, json_schema_input_type=list[str | ToolMatch])]


class ToolCallsConfig(Config):
    """Four lists, at least one of which has an entry."""

    required: Entries = Field(default_factory=list)
    disallowed: Entries = Field(default_factory=list)
    sequence: Entries = Field(default_factory=list)
    parallel: Entries = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_lists(self) -> ToolCallsConfig:
        problem = next(self._problems(), None)
        if problem is not None:
            raise ValueError(problem)
        return self

    def _problems(self) -> Iterator[str]:
        lists = {name: getattr(self, name) for name in _NOT_ALLOWED}
        if not any(lists.values()):
            yield "provide at least one of 'required', 'disallowed', 'sequence' or 'parallel'"
        for name, entries in lists.items():
            for index, entry in enumerate(entries):
                yield from (f"'{name}[{index}].{key}' {text}" for key, text in _entry_problems(entry, name))
                if name != "disallowed" and entry in self.disallowed:
                    yield f"'{name}[{index}]' is also in 'disallowed': '{entry.label}'"
        if len(self.parallel) == 1:
            yield "'parallel' must have at least two entries"

    def warnings(self) -> list[str]:
        """A sequence of one entry says nothing about order."""
        return ["'sequence' has only one entry, so it checks no order"] if len(self.sequence) == 1 else []


def _entry_problems(entry: ToolMatch, name: str) -> Iterator[tuple[str, str]]:
    for key in sorted(entry.model_fields_set & _NOT_ALLOWED[name]):
        yield key, f"is not allowed in '{name}'"
    yield from entry.problems()
