"""The keywords of JSON Schema that hold regular expressions, in the dialect that the draft asks for: ECMAScript's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import attrs
from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from jsonschema.validators import extend

from vally import Regex, compile_regex
from vally_grader_json.unevaluated import unevaluated_error, unevaluated_names

Errors = Iterator[ValidationError]


@cache
def validator_class() -> Any:
    """The validator of draft 2020-12 with these keywords."""
    extended: Any = extend(  # type: ignore[no-untyped-call]  # its stub has no types
        Draft202012Validator,
        {
            "pattern": _pattern,
            "patternProperties": _pattern_properties,
            "additionalProperties": _additional_properties,
            "unevaluatedProperties": _unevaluated_properties,
        },
    )
    # The library's way would go back to its own keywords in every part that has a `$schema`.
    extended.evolve = attrs.evolve
    return extended


def check_against_metaschema(schema: Any) -> None:
    """Raise `SchemaError` for a schema that its own schema does not allow; patterns are not looked at."""
    # A checker that knows the format of patterns would take them for Python's expressions.
    Draft202012Validator.check_schema(schema, format_checker=FormatChecker(formats=()))


def schema_regex(pattern: str) -> Regex:
    """A pattern of a schema, which matches anywhere; raises `InvalidRegex` and `RegexError`."""
    return compile_regex(pattern or "(?:)", unicode=True)


def _pattern(validator: Any, pattern: str, instance: Any, _: Any) -> Errors:
    if validator.is_type(instance, "string") and schema_regex(pattern).search(instance) is None:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], instance: Any, _: Any) -> Errors:
    if not validator.is_type(instance, "object"):
        return
    for pattern, part in patterns.items():
        regex = schema_regex(pattern)
        for name, value in instance.items():
            if regex.search(name) is not None:
                yield from validator.descend(value, part, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Mapping[str, Any]) -> Errors:
    if not validator.is_type(instance, "object"):
        return
    regexes = [schema_regex(pattern) for pattern in schema.get("patternProperties", ())]
    known = schema.get("properties", {})
    extras = [
        name for name in instance if name not in known and not any(regex.search(name) is not None for regex in regexes)
    ]
    if validator.is_type(allowed, "object"):
        for name in extras:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and extras:
        names = ", ".join(repr(name) for name in extras)
        yield ValidationError(f"Additional properties are not allowed ({names} {_were(extras)} unexpected)")


def _unevaluated_properties(validator: Any, part: Any, instance: Any, _: Any) -> Errors:
    if validator.is_type(instance, "object"):
        names = unevaluated_names(validator, part, instance, _matches)
        if names:
            yield unevaluated_error(part, names)


def _matches(pattern: str, name: str) -> bool:
    return schema_regex(pattern).search(name) is not None


def _were(names: list[str]) -> str:
    return "was" if len(names) == 1 else "were"
