"""Whether a schema is complete: its references lead to schemas in it, its patterns are regular expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jsonschema.exceptions import SchemaError
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from vally import InvalidRegex, RegexError
from vally_grader_json.keywords import check_against_metaschema, schema_regex

Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class SchemaProblem:
    """What is wrong with a schema at a place in it."""

    steps: Steps
    text: str


@dataclass
class _Walk:
    """Schemas still to look at, each with the resolver of references in it; `places` tells where each stands."""

    places: Mapping[int, Steps]
    pending: list[tuple[Resource[Any], Any]]
    seen: set[int] = field(default_factory=set)

    def add(self, schema: Resource[Any], resolver: Any) -> None:
        if id(schema.contents) not in self.seen:
            self.seen.add(id(schema.contents))
            self.pending.append((schema, resolver))


def incomplete_part(schema: Mapping[str, Any]) -> SchemaProblem | None:
    """The first reference or pattern of a valid schema that does not work, or None."""
    root = DRAFT202012.create_resource(schema)
    registry: Registry[Any] = Registry()
    walk = _Walk(dict(_places(schema, ())), [])
    walk.add(root, registry.resolver_with_root(root))
    while walk.pending:
        found, resolver = walk.pending.pop()
        if isinstance(found.contents, Mapping):
            problem = _look_at(walk, found, resolver)
            if problem is not None:
                return problem
    return None


def _places(value: Any, steps: Steps) -> Iterator[tuple[int, Steps]]:
    if isinstance(value, Mapping):
        yield id(value), steps
        for key, item in value.items():
            yield from _places(item, (*steps, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, (*steps, index))


def _look_at(walk: _Walk, schema: Resource[Any], resolver: Any) -> SchemaProblem | None:
    contents, steps = schema.contents, walk.places[id(schema.contents)]
    problem = _bad_pattern(contents, steps)
    for keyword in ("$ref", "$dynamicRef"):
        if problem is None and keyword in contents:
            problem = _follow(walk, contents[keyword], resolver, (*steps, keyword))
    for part in schema.subresources():
        walk.add(part, resolver.in_subresource(part))
    return problem


def _follow(walk: _Walk, reference: str, resolver: Any, steps: Steps) -> SchemaProblem | None:
    nowhere = SchemaProblem(steps, f"must lead to a schema in the same document, not to '{reference}'")
    try:
        target = resolver.lookup(reference)
    except (Unresolvable, ValueError):
        return nowhere
    if not isinstance(target.contents, (Mapping, bool)):
        return nowhere
    try:
        # Below a keyword that the dialect does not know, nobody has checked it yet.
        check_against_metaschema(target.contents)
    except SchemaError as error:
        return SchemaProblem(steps, f"leads to a schema that is not valid: {error.message}")
    walk.add(DRAFT202012.create_resource(target.contents), target.resolver)
    return None


def _bad_pattern(contents: Mapping[str, Any], steps: Steps) -> SchemaProblem | None:
    found = [((*steps, "patternProperties", pattern), pattern) for pattern in contents.get("patternProperties", ())]
    if "pattern" in contents:
        found.append(((*steps, "pattern"), contents["pattern"]))
    for place, pattern in found:
        try:
            schema_regex(pattern)
        except InvalidRegex as error:
            return SchemaProblem(place, f"is not a regular expression: {error.message}")
        except RegexError as error:
            return SchemaProblem(place, f"cannot be used as a regular expression: {error}")
    return None
