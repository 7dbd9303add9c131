"""The JSON Schema of every shape that the tables of keys use."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from vally.spec.artifacts import WorkspaceGlobShape
from vally.spec.constraints import Bounded
from vally.spec.pointers import POINTER_PATTERN, PointerShape
from vally.spec.project import GlobsShape
from vally.spec.schema.writer import Schema, Writer, deprecated, either, or_null, require_all
from vally.spec.sections import Key, Table
from vally.spec.shapes import (
    Boolean,
    Choice,
    DurationShape,
    Integer,
    ListOf,
    MapOf,
    Number,
    Opaque,
    OpaqueMapping,
    RawShape,
    SectionOf,
    Text,
    TextOfScalar,
)
from vally.spec.stimuli import NameShape, RubricShape, TurnsShape
from vally.spec.tags import TagsShape
from vally.text.durations import DURATION_PATTERN

NOT_BLANK: Schema = {"type": "string", "pattern": r"\S"}
_DIGITS = "^[0-9]{1,15}$"


@singledispatch
def schema_of(shape: Any, _writer: Writer) -> Schema:
    """The schema of the values that a shape reads without an error."""
    raise TypeError(f"{type(shape).__name__} has no JSON Schema")


@schema_of.register
def _(shape: RawShape, writer: Writer) -> Schema:
    from vally.spec.schema.parts import PARTS

    return writer.define(shape.part, PARTS[shape.part]) if shape.part else {}


@schema_of.register
def _(shape: Text, writer: Writer) -> Schema:
    if shape.pattern:
        return writer.scalar({"type": "string", "pattern": f"^(?:{shape.pattern})$"})
    return {"type": "string"} if shape.blank else dict(NOT_BLANK)


@schema_of.register
def _(_shape: TextOfScalar, _writer: Writer) -> Schema:
    return {"type": ["string", "number", "boolean"]}


@schema_of.register
def _(shape: Choice, writer: Writer) -> Schema:
    return writer.scalar({"enum": list(shape.words)})


@schema_of.register
def _(_shape: Boolean, writer: Writer) -> Schema:
    return writer.scalar({"type": "boolean"})


@schema_of.register
def _(shape: Integer, writer: Writer) -> Schema:
    return writer.scalar({"type": "integer", **_bounds(shape.low, shape.high)})


@schema_of.register
def _(shape: Number, writer: Writer) -> Schema:
    return writer.scalar({"type": "number", **_bounds(shape.low, shape.high)})


def _bounds(low: float, high: float | None) -> Schema:
    return {"minimum": low} if high is None else {"minimum": low, "maximum": high}


@schema_of.register
def _(_shape: DurationShape, writer: Writer) -> Schema:
    return writer.complete(lambda writer: writer.define("duration", _duration))


def _duration(writer: Writer) -> Schema:
    return either(
        writer.scalar({"type": "string", "pattern": DURATION_PATTERN}),
        deprecated({"type": "number", "exclusiveMinimum": 0}, "seconds; write the unit"),
        deprecated({"type": "string", "pattern": _DIGITS}, "seconds; write the unit"),
    )


@schema_of.register
def _(shape: ListOf, writer: Writer) -> Schema:
    # A list replaces the whole of another one.
    item = writer.complete(lambda writer: schema_of(shape.item, writer))
    items: Schema = {"type": "array", "items": item}
    if shape.nonempty:
        items["minItems"] = 1
    listed = writer.collection(items)
    if shape.single == "error":
        return listed
    return either(listed, deprecated(item, "write a list") if shape.single == "warning" else item)


@schema_of.register
def _(shape: MapOf, writer: Writer) -> Schema:
    mapping: Schema = {"type": "object", "additionalProperties": or_null(schema_of(shape.value, writer))}
    if shape.names:
        mapping["propertyNames"] = {"pattern": f"^(?:{shape.names})$"}
    return writer.collection(mapping)


@schema_of.register
def _(shape: SectionOf, writer: Writer) -> Schema:
    return writer.collection(table_schema(shape.table, writer))


@schema_of.register
def _(_shape: Opaque, _writer: Writer) -> Schema:
    return {}


@schema_of.register
def _(_shape: OpaqueMapping, writer: Writer) -> Schema:
    return writer.collection({"type": "object"})


@schema_of.register
def _(shape: Bounded, writer: Writer) -> Schema:
    return schema_of(shape.shape, writer)


@schema_of.register
def _(_shape: GlobsShape, _writer: Writer) -> Schema:
    return either({"type": "array", "items": dict(NOT_BLANK)}, NOT_BLANK)


@schema_of.register
def _(_shape: WorkspaceGlobShape, _writer: Writer) -> Schema:
    return dict(NOT_BLANK)


@schema_of.register
def _(_shape: PointerShape, writer: Writer) -> Schema:
    pointer = writer.scalar({"type": "string", "pattern": f"^{POINTER_PATTERN}$"})
    return either(pointer, deprecated({"type": "string", "pattern": "^/config(?:/|$)"}, "write /defaults"))


@schema_of.register
def _(_shape: NameShape, _writer: Writer) -> Schema:
    return dict(NOT_BLANK)


@schema_of.register
def _(_shape: TurnsShape, writer: Writer) -> Schema:
    older = {"type": "object", "properties": {"prompt": NOT_BLANK}, "required": ["prompt"]}
    turn = either(NOT_BLANK, deprecated({**older, "additionalProperties": False}, "write the text alone"))
    return writer.collection({"type": "array", "items": turn, "minItems": 1})


@schema_of.register
def _(_shape: RubricShape, writer: Writer) -> Schema:
    older = deprecated({"type": ["object", "array"]}, "a criterion with a colon; quote it")
    rubric = {"type": "array", "items": either(NOT_BLANK, older)}
    return either(writer.collection(rubric), deprecated(NOT_BLANK, "write a list"))


@schema_of.register
def _(_shape: TagsShape, writer: Writer) -> Schema:
    text = {"type": ["string", "number", "boolean"]}
    value = or_null(either(text, {"type": "array", "items": text}))
    named = {"propertyNames": {"pattern": "^[^=,]+$"}}
    return writer.collection({"type": "object", **named, "additionalProperties": value})


def table_schema(table: Table, writer: Writer) -> Schema:
    """The mapping that a table of keys reads; keys that are only warned about are deprecated."""
    from vally.spec.schema.conditions import conditions_of

    properties = {name: _property(key, writer) for name, key in table.keys.items()}
    for old, hint in table.ignored.items():
        properties[old] = {"description": f"has no effect: {hint}", "deprecated": True}
    for old, new in table.renamed.items():
        properties[old] = deprecated(properties[new], f"older name of {new}")
    schema: Schema = {"type": "object", "properties": properties}
    required = [name for name, key in table.keys.items() if key.required and not writer.partial]
    if required:
        schema["required"] = required
    if not table.open:
        schema |= {"patternProperties": {"^x-": True}, "additionalProperties": False}
    if table.misplaced:
        elsewhere = [key for key in table.misplaced if key not in table.keys]
        schema["propertyNames"] = {"not": {"enum": elsewhere}}
    renamed = ({"not": {"required": [old, new]}} for old, new in table.renamed.items())
    return require_all(schema, *renamed, *(() if writer.partial else conditions_of(table)))


def _property(key: Key, writer: Writer) -> Schema:
    value = schema_of(key.shape, writer)
    # A part whose null has a meaning of its own says itself what it takes.
    refuses_null = key.required or (key.nullable and isinstance(key.shape, RawShape))
    schema = value if refuses_null else or_null(value)
    schema = {"description": key.doc, **schema} if key.doc else schema
    return schema if key.default is None else {**schema, "default": key.default}
