"""JSON Schemas of the files that users write and of the lines that runs write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from vally._version import __version__
from vally.spec.experiment_keys import EXPERIMENT, REMOVED
from vally.spec.project import PROJECT
from vally.spec.schema.records import records_schema
from vally.spec.schema.shapes import table_schema
from vally.spec.schema.writer import Schema, Writer
from vally.spec.spec_keys import SPEC

if TYPE_CHECKING:
    from vally.host import PluginHost


def _eval(writer: Writer) -> Schema:
    writer.templates = True
    return {"title": "Eval spec of vally", **table_schema(SPEC, writer)}


def _config(writer: Writer) -> Schema:
    schema = table_schema(PROJECT, writer)
    # The file may be empty.
    return {"title": "Project file of vally (.vally.yaml)", **schema, "type": ["object", "null"]}


def _experiment(writer: Writer) -> Schema:
    schema = table_schema(EXPERIMENT, writer)
    refused = schema["propertyNames"]["not"]["enum"]
    schema["propertyNames"] = {"not": {"enum": [*refused, *REMOVED]}}
    return {"title": "Experiment file of vally", **schema}


SCHEMAS: Mapping[str, Callable[[Writer], Schema]] = MappingProxyType(
    {"eval": _eval, "config": _config, "experiment": _experiment, "results": records_schema}
)
"""The kinds of documents that have a schema."""


def json_schema(kind: str, *, host: PluginHost) -> Schema:
    """The JSON Schema (draft 2020-12) of a kind of document, with the configs of the plugins of `host`.

    Equal for equal plugins. Raises KeyError for an unknown kind, PluginError when a plugin the user named fails.
    """
    from pydantic.json_schema import GenerateJsonSchema

    writer = Writer(host)
    body = SCHEMAS[kind](writer)
    head = {
        "$schema": GenerateJsonSchema.schema_dialect,
        "$id": f"https://vally.example/schema/{kind}/{__version__.split('.')[0]}.json",
    }
    definitions = dict(sorted(writer.definitions.items()))
    return {**head, **body, **({"$defs": definitions} if definitions else {})}
