"""Whether the fields of a record hold what their annotations say; a wrong one would be found in the middle of a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, NamedTuple

from vally.records import Capabilities, Record

CHECKED_CONSTRAINTS = (
    "max_turns",
    "max_tokens",
    "max_duration",
    "expect_tools",
    "reject_tools",
    "expect_skills",
    "reject_skills",
)
"""Keys of `constraints` that become graders, in that order; the record of a grader says which of them it checks."""

Test = Callable[[object], bool]


class _Rule(NamedTuple):
    field: str
    fits: Test
    wanted: str


def _texts(value: object) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(item, str) for item in value)


def _text_table(value: object) -> bool:
    return isinstance(value, Mapping) and _texts(list(value)) and _texts(list(value.values()))


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_PLAIN: Mapping[str, tuple[Test, str]] = {
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "bool | None": (lambda value: value is None or isinstance(value, bool), "True, False or None"),
    "int": (_number, "a number"),
    "float": (_number, "a number"),
    "str | None": (lambda value: value is None or isinstance(value, str), "a text or None"),
    "tuple[str, ...]": (_texts, "a tuple of texts"),
    "tuple[ReporterOption, ...]": (lambda value: isinstance(value, tuple | list), "a tuple of ReporterOption"),
    "Mapping[str, str]": (_text_table, "a mapping of texts to texts"),
    "Mapping[str, object]": (lambda value: isinstance(value, Mapping), "a mapping"),
    "Capabilities": (lambda value: isinstance(value, Capabilities), "Capabilities"),
}


def fact_problems(record: Record) -> Iterable[str]:
    """Yield what is wrong with the fields of a record that have a plain annotation."""
    kind: Any = type(record)
    for rule in _rules(kind):
        value = getattr(record, rule.field)
        if not rule.fits(value):
            yield f"{rule.field} of '{record.name}' must be {rule.wanted}, not {value!r:.80}"


@lru_cache(maxsize=64)
def _rules(kind: Any) -> tuple[_Rule, ...]:
    found = [(field.name, _rule(str(field.type))) for field in fields(kind)]
    return tuple(_Rule(name, *rule) for name, rule in found if rule is not None)


def _rule(annotation: str) -> tuple[Test, str] | None:
    if not annotation.startswith("Literal["):
        return _PLAIN.get(annotation)
    words: tuple[Any, ...] = tuple(re.findall(r"[\"']([^\"']*)[\"']", annotation))
    allowed = (*words, None) if annotation.endswith("| None") else words
    return (lambda value: value in allowed), " or ".join(map(repr, words))
