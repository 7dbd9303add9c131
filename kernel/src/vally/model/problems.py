"""Wording of pydantic's findings about a config mapping: one line per problem that names the key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic.alias_generators import to_camel

from vally.model.known_keys import known_keys
from vally.text.suggest import did_you_mean

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

_TYPES = {
    "string_type": "a string",
    "bool_type": "true or false",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "int_parsing": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "null",
}
_PHRASES = {
    "finite_number": "a finite number",
    "string_unicode": "valid Unicode text",
    "greater_than": "greater than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "multiple_of": "a multiple of {multiple_of}",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "string_pattern_mismatch": "text that matches {pattern}",
}


class FieldProblem(ValueError):
    """What is wrong with a field of the model; users know it by the key that they wrote."""

    def __init__(self, field: str | None, text: str) -> None:
        super().__init__(f"'{field}' {text}")
        self.field = field
        self.text = text

    def worded(self, keys: Iterable[int | str]) -> str:
        """The problem with the field named by its key, which is among these when it is not the field's own name."""
        known = (self.field, to_camel(self.field or ""))
        name = next((key for key in keys if key in known), self.field)
        return f"'{name}' {self.text}"


class _Finding(NamedTuple):
    """One error of pydantic; `path` has the keys and indexes that a user wrote, `in_union` tells of left-out tags."""

    path: tuple[int | str, ...]
    in_union: bool
    item: Mapping[str, Any]

    @property
    def key(self) -> str:
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
        return text


def config_problems(error: ValidationError, values: Mapping[str, object] | None = None) -> list[str]:
    """Word every finding once; `values` is the mapping that was validated.

    A `ValueError` of a validator is taken as it is. Of the alternatives of a union, those that fit best are named.
    """
    findings = [_finding(item, values) for item in error.errors(include_url=False)]
    kept = [finding for finding in findings if not _fits_worse(finding, findings)]
    return list(dict.fromkeys(_problem(finding, kept) for finding in kept))


def key_suggestions(error: ValidationError, values: Mapping[str, object], model: type[BaseModel]) -> dict[str, str]:
    """What may be meant by the keys that the model does not know, by the problem that `config_problems` words."""
    found = {}
    for item in error.errors(include_url=False):
        if item["type"] == "extra_forbidden":
            finding = _finding(item, values)
            key, known = str(finding.path[-1]), known_keys(model, finding.path[:-1])
            # In a union another alternative may know the key.
            hint = None if key in known else did_you_mean(key, known)
            if hint is not None:
                found[_problem(finding, ())] = hint
    return found


def _finding(item: Mapping[str, Any], values: object) -> _Finding:
    # The location of an error inside a union also holds tags such as "str" or "list[str]", which nobody wrote.
    location: tuple[int | str, ...] = item["loc"]
    path: list[int | str] = []
    current = values
    for index, part in enumerate(location):
        known, step = _step(current, part)
        absent_key = item["type"] == "missing" and index == len(location) - 1
        if known or absent_key or values is None:
            path.append(part)
            current = step
    return _Finding(tuple(path), len(path) < len(location), item)


def _step(value: object, part: int | str) -> tuple[bool, object]:
    if isinstance(value, Mapping) and part in value:
        return True, value[part]
    if isinstance(value, list | tuple) and isinstance(part, int) and 0 <= part < len(value):
        return True, value[part]
    return False, value


def _fits_worse(finding: _Finding, findings: Iterable[_Finding]) -> bool:
    """Whether another alternative of the same union came further into the value."""
    if not finding.in_union:
        return False
    depth = len(finding.path)
    return any(
        other.in_union and len(other.path) > depth and other.path[:depth] == finding.path and _is_type(finding)
        for other in findings
    )


def _is_type(finding: _Finding) -> bool:
    return finding.item["type"] in _TYPES


def _problem(finding: _Finding, findings: Iterable[_Finding]) -> str:
    item, key = finding.item, finding.key
    kind, context = item["type"], item.get("ctx") or {}
    if kind == "extra_forbidden":
        return f"unknown key '{key}'"
    if kind == "missing":
        return f"'{key}' is required"
    if kind in ("value_error", "assertion_error"):
        error = context.get("error", item["msg"])
        return error.worded(finding.path) if isinstance(error, FieldProblem) else str(error)
    return f"'{key}' must be {_wanted(finding, findings)}" if key else f"must be {_wanted(finding, findings)}"


def _wanted(finding: _Finding, findings: Iterable[_Finding]) -> str:
    kind, context = finding.item["type"], finding.item.get("ctx") or {}
    if kind in _TYPES:
        return _either(
            _TYPES[other.item["type"]] for other in findings if _is_type(other) and other.path == finding.path
        )
    if kind in _PHRASES:
        return _PHRASES[kind].format(**{name: _number(value) for name, value in context.items()})
    if kind in ("string_too_short", "too_short"):
        return _length("at least", int(context["min_length"]), kind)
    if kind in ("string_too_long", "too_long"):
        return _length("at most", int(context["max_length"]), kind)
    if kind.startswith("union_tag"):
        return f"a mapping whose {context['discriminator']} is {context.get('expected_tags', 'given')}"
    message = str(finding.item["msg"])
    return f"valid: {message[:1].lower()}{message[1:]}"


def _either(phrases: Iterable[str]) -> str:
    *others, last = dict.fromkeys(phrases)
    return f"{', '.join(others)} or {last}" if others else last


def _number(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _length(bound: str, count: int, kind: str) -> str:
    if bound == "at least" and count == 1:
        return "non-empty"
    unit = "character" if kind.startswith("string") else "item"
    return f"of {bound} {count} {unit}{'' if count == 1 else 's'}"
