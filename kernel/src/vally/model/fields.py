"""Field types for the config models of graders, worded alike everywhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, GetJsonSchemaHandler, ValidationInfo, WithJsonSchema

from vally.model.config import Pattern
from vally.model.problems import FieldProblem
from vally.text.durations import DURATION_PATTERN

_ABSOLUTE = re.compile(r"/|\\|[A-Za-z]:")


def _non_empty(value: str, info: ValidationInfo) -> str:
    if not value:
        raise FieldProblem(info.field_name, "must not be empty")
    return value


def _positive_duration(value: object, info: ValidationInfo) -> str:
    from vally.text.durations import InvalidDuration, parse_duration

    try:
        valid = isinstance(value, str) and parse_duration(value) > 0
    except InvalidDuration:
        valid = False
    if not isinstance(value, str) or not valid:
        raise FieldProblem(info.field_name, "must be a duration above zero such as 30s or 1m30s")
    return value


def _inside(value: str, info: ValidationInfo) -> str:
    from vally.text.globs import leaves_root

    if leaves_root(value):
        raise FieldProblem(info.field_name, "must stay inside the workspace")
    return value


def _directory_inside(value: str, info: ValidationInfo) -> str:
    if not value or _ABSOLUTE.match(value) or ".." in re.split(r"[/\\]", value):
        raise FieldProblem(info.field_name, "must stay inside the workspace")
    return value


def _beside_the_eval(value: Path, info: ValidationInfo) -> Path:
    directory = info.context.get("spec_dir") if isinstance(info.context, dict) else None
    if directory is None:
        return value
    path = Path(directory, value)
    if not path.is_file():
        problem = "is not a file" if path.exists() else "does not exist"
        raise FieldProblem(info.field_name, f"must be a file, '{value.as_posix()}' {problem}")
    return path.absolute()


def _stays_negated(value: bool, info: ValidationInfo) -> bool:
    if not value:
        raise FieldProblem(info.field_name, "must not be false: the keyword itself is negated")
    return value


def _one_or_more(value: Any, info: ValidationInfo) -> Any:
    items = [value] if isinstance(value, str) else value
    if isinstance(items, list) and not items:
        raise FieldProblem(info.field_name, "must not be empty")
    return items


def _no_blank_item(items: list[str], info: ValidationInfo) -> list[str]:
    if not all(item.strip() for item in items):
        raise FieldProblem(info.field_name, "must not hold a blank item")
    return items


def _environment(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, Mapping):
        raise FieldProblem(info.field_name, "must be a mapping")
    for name, setting in value.items():
        if not isinstance(name, str) or not re.fullmatch(r"[^=\0]+", name):
            raise FieldProblem(info.field_name, f"has the invalid variable name '{name}'")
        if not isinstance(setting, (str, bool, int, float)):
            raise ValueError(f"'{info.field_name}.{name}' must be a string, a number or a boolean")
        if isinstance(setting, str) and "\0" in setting:
            raise ValueError(f"'{info.field_name}.{name}' must not hold a NUL character")
    return dict(value)


class _OneOrMore(BeforeValidator):
    """Adds the single string to the JSON schema of the list."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, {**handler(schema), "minItems": 1}]}


NonEmpty = Annotated[str, AfterValidator(_non_empty), WithJsonSchema({"type": "string", "minLength": 1})]
"""A string of at least one character."""

DurationText = Annotated[
    str, BeforeValidator(_positive_duration), WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN})
]
"""A duration above zero with its unit, kept as written; `parse_duration` gives its milliseconds."""

WorkspaceGlob = Annotated[str, AfterValidator(_inside)]
"""A relative path or glob that cannot leave the directory it is resolved in."""

WorkspaceDirectory = Annotated[str, AfterValidator(_directory_inside)]
"""A relative directory with `/` or `\\` separators."""

SpecFile = Annotated[Path, AfterValidator(_beside_the_eval), WithJsonSchema({"type": "string"})]
"""A file, written relative to the directory of the eval.

Where that directory is known, as when a spec is loaded or a run is graded, the file must exist and the value is its
absolute path; elsewhere it is the path as written, and nothing is looked at.
"""

NegatedFlag = Annotated[bool, AfterValidator(_stays_negated), WithJsonSchema({"const": True})]
"""`negate` of a keyword that is negated already."""

OneOrMore = _OneOrMore(_one_or_more)
"""Annotation for `list[...]` fields that may be written as a single string and must not be empty."""

ToolPatterns = Annotated[list[Pattern], OneOrMore, AfterValidator(_no_blank_item)]
"""One or more regular expressions over tool names."""

EnvironmentMap = Annotated[dict[str, str | bool | int | float], BeforeValidator(_environment)]
"""Environment variables; numbers and booleans are written as JSON."""
