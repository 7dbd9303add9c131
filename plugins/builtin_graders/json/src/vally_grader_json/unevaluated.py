"""The keyword `unevaluatedProperties`: the library matches names with Python's expressions, without a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jsonschema import ValidationError
from referencing.jsonschema import DRAFT202012

Matches = Callable[[str, str], bool]
"""Whether a pattern matches somewhere in a name."""


def unevaluated_names(validator: Any, part: Any, instance: Mapping[str, Any], matches: Matches) -> list[str]:
    """Names of an object that no other keyword looks at and whose values `part` does not allow."""
    schema = {keyword: value for keyword, value in validator.schema.items() if keyword != "unevaluatedProperties"}
    evaluated = set(_evaluated(validator.evolve(schema=schema), instance, matches))
    return [name for name, value in instance.items() if name not in evaluated and not _allows(validator, part, value)]


def unevaluated_error(part: Any, names: list[str]) -> ValidationError:
    """The one error for all of them."""
    shown = ", ".join(repr(name) for name in names)
    if part is False:
        were = "was" if len(names) == 1 else "were"
        return ValidationError(f"Unevaluated properties are not allowed ({shown} {were} unexpected)")
    return ValidationError(f"Unevaluated properties are not valid under the given schema ({shown})")


def _evaluated(validator: Any, instance: Mapping[str, Any], matches: Matches) -> Iterator[str]:
    """Names that the validator's schema, which allows the instance, looks at, and those of its parts for the same."""
    schema = validator.schema
    yield from (name for name in schema.get("properties", {}) if name in instance)
    for pattern in schema.get("patternProperties", {}):
        yield from (name for name in instance if matches(pattern, name))
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if keyword in schema:
            yield from (name for name, value in instance.items() if _allows(validator, schema[keyword], value))
    for part in _parts_that_apply(validator, instance):
        if isinstance(part.schema, Mapping):
            yield from _evaluated(part, instance, matches)


def _parts_that_apply(validator: Any, instance: Mapping[str, Any]) -> Iterator[Any]:
    """A validator for each schema that applies to the same instance and allows it."""
    schema = validator.schema
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            # The library offers no other way to follow a reference from within a keyword.
            target = validator._resolver.lookup(schema[keyword])
            yield validator.evolve(schema=target.contents, _resolver=target.resolver)
    for part in _alternatives(validator, instance):
        if _allows(validator, part, instance):
            resolver = validator._resolver.in_subresource(DRAFT202012.create_resource(part))
            yield validator.evolve(schema=part, _resolver=resolver)


def _alternatives(validator: Any, instance: Mapping[str, Any]) -> Iterator[Any]:
    schema = validator.schema
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from schema.get(keyword, ())
    yield from (part for name, part in schema.get("dependentSchemas", {}).items() if name in instance)
    if "if" in schema:
        yield schema["if"]
        branch = "then" if _allows(validator, schema["if"], instance) else "else"
        if branch in schema:
            yield schema[branch]


def _allows(validator: Any, part: Any, value: Any) -> bool:
    return next(validator.descend(value, part), None) is None
