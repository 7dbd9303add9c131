"""What the installed plugins say about the config of graders, executors and judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from vally.errors import PluginError
from vally.spec.defaults import EXECUTOR, PROVIDER_FAMILIES, PROVIDER_KEYS
from vally.spec.grader_entries import ENTRY
from vally.spec.schema.shapes import NOT_BLANK, table_schema
from vally.spec.schema.writer import NULL, Schema, Writer, either, has, is_one_of, or_null, require_all
from vally.spec.sections import Table

if TYPE_CHECKING:
    from pydantic import BaseModel

    from vally.records import GraderSpec, Record

_NESTED = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
_BY_NAME = ("dependentSchemas", "patternProperties", "properties")
_SCALARS = frozenset({"boolean", "integer", "number", "string"})
_REFERENCE = "#/$defs/"


def grader_type_schema(writer: Writer) -> Schema:
    """One of the keywords that are installed."""
    return writer.scalar({"enum": list(_records(writer, "grader"))})


def grader_schema(writer: Writer) -> Schema:
    """One entry of `graders`, its config by its type."""
    by_type = [_by_keyword(writer, record) for record in _records(writer, "grader").values()]
    return writer.collection(require_all(table_schema(ENTRY, writer), *by_type))


def _by_keyword(writer: Writer, record: GraderSpec) -> Schema:
    rules: Schema = {"properties": {"config": _config(writer, record)}}
    if _needs_config(writer, record):
        rules["required"] = ["config"]
    if not record.supports_turn:
        rules["properties"]["turn"] = dict(NULL)
    if not record.supports_scope:
        rules["properties"]["scope"] = or_null(writer.scalar({"enum": ["all"]}))
    return {"if": is_one_of("type", [record.name]), "then": {"description": record.summary, **rules}}


def executor_schema(writer: Writer) -> Schema:
    """The name of an executor, or name and config; the configs of installed ones are known."""
    records = _records(writer, "executor")
    name = {**NOT_BLANK, "examples": list(records)} if records else dict(NOT_BLANK)
    mapping = table_schema(EXECUTOR, writer)
    mapping["properties"]["name"] |= name
    by_name = [
        {"if": is_one_of("name", [record.name]), "then": {"properties": {"config": _config(writer, record)}}}
        for record in records.values()
    ]
    return either(name, require_all(mapping, *by_name))


def provider_schema(writer: Writer) -> Schema:
    """The endpoint of judges; keys beyond the usual ones are those of installed judges."""
    served = {kind: record for record in _records(writer, "judge").values() for kind in record.provider_types}
    schema = table_schema(Table("judge_provider", PROVIDER_KEYS), writer)
    for record in served.values():
        extra = _model_schema(writer, record).get("properties", {}) if record.config is not None else {}
        schema["properties"] |= {key: value for key, value in extra.items() if key not in schema["properties"]}
    kinds = dict.fromkeys((*PROVIDER_FAMILIES, *sorted(served)))
    schema["properties"]["type"] = {**schema["properties"]["type"], **writer.scalar({"enum": list(kinds)})}
    families = {"if": is_one_of("type", PROVIDER_FAMILIES), "then": has("baseUrl")}
    return require_all(schema, families, {"not": has("apiKeyEnv", "bearerTokenEnv")})


def _records(writer: Writer, kind: str) -> Mapping[str, Any]:
    return writer.host.records(kind)


def _config(writer: Writer, record: Record) -> Schema:
    """The config of one plugin; null is an empty one."""
    if record.config is None:
        return or_null({"type": "object", "additionalProperties": False})
    schema = writer.define(f"{record.name}-config", lambda writer: writer.collection(_model_schema(writer, record)))
    return schema if _needs_config(writer, record) else either(schema, NULL)


def _needs_config(writer: Writer, record: Record) -> bool:
    model = _model(writer, record)
    return model is not None and any(field.is_required() for field in model.model_fields.values())


def _model(writer: Writer, record: Record) -> type[BaseModel] | None:
    try:
        return writer.host.config_model(record)
    except PluginError:
        return None


def _model_schema(writer: Writer, record: Record) -> Schema:
    """The schema of a config model; an open mapping when the plugin has none that JSON Schema can express."""
    model = _model(writer, record)
    try:
        schema = {} if model is None else model.model_json_schema(mode="validation", by_alias=True)
    except Exception:  # types of other libraries may refuse
        schema = {}
    if not schema:
        return {"type": "object"}
    prefix = f"{record.name}-"
    for name, nested in schema.pop("$defs", {}).items():
        writer.define(f"{prefix}{name}", lambda writer, nested=nested: _adapted(writer, nested, prefix))  # type: ignore[misc]
    return _members(writer, schema, prefix)


def _adapted(writer: Writer, schema: Any, prefix: str) -> Any:
    """A part of a model's schema: nested definitions renamed, and placeholders let in."""
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {**_without_titles(schema), "$ref": schema["$ref"].replace(_REFERENCE, f"{_REFERENCE}{prefix}")}
    adapted = _members(writer, schema, prefix)
    types = set(_types(schema))
    if types & {"array", "object"}:
        return writer.collection(adapted)
    return writer.scalar(adapted) if types & _SCALARS or "enum" in schema or "const" in schema else adapted


def _members(writer: Writer, schema: Schema, prefix: str) -> Schema:
    members: Schema = {}
    for key, value in _without_titles(schema).items():
        if key in _BY_NAME:
            members[key] = {name: _adapted(writer, nested, prefix) for name, nested in value.items()}
        elif key in _SINGLE:
            members[key] = _adapted(writer, value, prefix)
        elif key == "anyOf":
            members |= either(*(_adapted(writer, nested, prefix) for nested in value))
        elif key in _NESTED:
            members[key] = [_adapted(writer, nested, prefix) for nested in value]
        else:
            members[key] = value
    return members


def _without_titles(schema: Schema) -> Schema:
    """Titles only repeat names, and a default of null is none."""
    return {key: value for key, value in schema.items() if key != "title" and not (key == "default" and value is None)}


def _types(schema: Schema) -> Iterator[str]:
    kind = schema.get("type")
    yield from [kind] if isinstance(kind, str) else kind or ()
