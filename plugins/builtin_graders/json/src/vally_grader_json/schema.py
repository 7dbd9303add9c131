"""JSON Schemas, draft 2020-12: whether one is valid and complete in itself, and where a document violates it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema.exceptions import SchemaError
from referencing import Registry

from vally import one_line_evidence
from vally_grader_json.keywords import check_against_metaschema, validator_class
from vally_grader_json.references import SchemaProblem, incomplete_part

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class Violation:
    """One place of a document that the schema does not allow; `pointer` is a JSON Pointer, `/` for the whole."""

    pointer: str
    message: str


def schema_problem(schema: Mapping[str, Any]) -> SchemaProblem | None:
    """What is wrong with a schema, or None; references that leave it are wrong too."""
    dialect = schema.get("$schema", DIALECT)
    if not isinstance(dialect, str) or dialect.removesuffix("#") != DIALECT:
        return SchemaProblem(("$schema",), f"must be {DIALECT}")
    try:
        check_against_metaschema(schema)
        return incomplete_part(schema)
    except SchemaError as error:
        return SchemaProblem(tuple(error.path), f"is not valid: {_short(error.message)}")
    except RecursionError:
        return SchemaProblem((), "is nested too deeply")


def violations(schema: Mapping[str, Any], document: Any) -> Iterator[Violation]:
    """Where a document violates a checked schema, in the order of the schema's keywords."""
    # A registry of its own keeps the library from looking references up elsewhere.
    validator = validator_class()(schema, registry=Registry())
    for error in validator.iter_errors(document):
        yield Violation(json_pointer(error.absolute_path), _short(error.message))


def json_pointer(steps: Iterable[str | int]) -> str:
    """A JSON Pointer, `/` for the whole document."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps) or "/"


def _short(message: str) -> str:
    return one_line_evidence(message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…")
