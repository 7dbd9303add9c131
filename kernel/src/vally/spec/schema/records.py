"""The JSON Schema of the lines of `results.jsonl`, from the models that write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vally.model.results import RunSummary, TrialResult
from vally.model.trajectory import RecordModel
from vally.spec.schema.writer import Schema, Writer, either

_LINES = (TrialResult, RunSummary)


def records_schema(writer: Writer) -> Schema:
    """A trial or the closing summary of a run; unknown keys are allowed."""
    from pydantic.json_schema import models_json_schema

    _, schema = models_json_schema([(model, "serialization") for model in _LINES], by_alias=True)
    models = {model.__name__: model for model in _reachable()}
    for name, part in schema["$defs"].items():
        writer.definitions[name] = _as_written(part, models[name]) if name in models else part
    lines = either(*({"$ref": f"#/$defs/{model.__name__}"} for model in _LINES))
    return {"title": "A line of results.jsonl of vally", **lines}


def _reachable() -> Iterator[type[RecordModel]]:
    pending: list[type[RecordModel]] = [RecordModel]
    while pending:
        model = pending.pop()
        yield model
        pending += model.__subclasses__()


def _as_written(schema: Schema, model: type[RecordModel]) -> Schema:
    """What the model writes: absent instead of null, unless its table says null."""
    properties, required = {}, []
    for name, field in model.model_fields.items():
        key = field.alias or name
        if field.exclude:
            continue
        value: dict[str, Any] = {k: v for k, v in schema["properties"][key].items() if k not in ("title", "default")}
        if name not in model.or_null | model.null_if_set:
            value = _without_null(value)
        properties[key] = value
        if field.is_required() or name in model.or_null or field.default is not None:
            required.append(key)
    kept = {key: value for key, value in schema.items() if key not in ("title", "required")}
    return {**kept, "properties": properties, "required": required}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" not in schema:
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**either(*(part for part in schema["anyOf"] if part != {"type": "null"})), **rest}
