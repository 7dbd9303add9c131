"""The parts of specs and project files that are read in several steps, and their JSON Schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from vally.spec.attachments import ATTACHMENT
from vally.spec.constraints import CONSTRAINTS
from vally.spec.environments import ENVIRONMENT, GRADING_ENVIRONMENT
from vally.spec.experiment_keys import AXIS, VARIANT
from vally.spec.git_sources import CLONE, EITHER, WORKTREE
from vally.spec.golden import GOLDEN_COMMAND, GOLDEN_TEXT
from vally.spec.grader_entries import SLUG
from vally.spec.mcp_servers import REMOTE, STDIO
from vally.spec.project import BACKEND, SUITE
from vally.spec.schema.plugin_configs import executor_schema, grader_schema, grader_type_schema, provider_schema
from vally.spec.schema.shapes import NOT_BLANK, table_schema
from vally.spec.schema.writer import Schema, Writer, deprecated, either, is_one_of, require_all
from vally.spec.sections import Table
from vally.spec.simulation import SIMULATION
from vally.spec.staged_files import FILE
from vally.spec.stimuli import STIMULUS, UNNAMED
from vally.spec.templates import ROWS

Part = Callable[[Writer], Schema]


def _mapping_value(writer: Writer) -> Schema:
    return writer.collection({"type": "object"})


def _environment(writer: Writer) -> Schema:
    return writer.collection(either(NOT_BLANK, _mapping(ENVIRONMENT, writer, "named-environment")))


def _variant_environment(writer: Writer) -> Schema:
    return writer.lay_over(_environment)


def _grading_environment(writer: Writer) -> Schema:
    return writer.collection(either(NOT_BLANK, table_schema(GRADING_ENVIRONMENT, writer)))


def _named_environment(writer: Writer) -> Schema:
    return table_schema(ENVIRONMENT, writer)


def _mapping(table: Table, writer: Writer, name: str) -> Schema:
    return writer.define(name, lambda writer: table_schema(table, writer))


def _file(writer: Writer) -> Schema:
    return writer.collection(table_schema(FILE, writer))


def _git(writer: Writer) -> Schema:
    by_type = [
        {"if": is_one_of("type", [kind]), "then": table_schema(table, writer)}
        for kind, table in (("worktree", WORKTREE), ("clone", CLONE))
    ]
    return writer.collection(require_all(table_schema(EITHER, writer), *by_type))


def _mcp_server(writer: Writer) -> Schema:
    stdio, remote = _mapping(STDIO, writer, "stdio-server"), _mapping(REMOTE, writer, "remote-server")
    unknown = {"if": is_one_of("type", ["stdio"]), "then": stdio, "else": either(stdio, remote)}
    return {"type": "object", "if": is_one_of("type", ["http", "sse"]), "then": remote, "else": unknown}


def _attachment(writer: Writer) -> Schema:
    return either(NOT_BLANK, table_schema(ATTACHMENT, writer))


def _constraints(writer: Writer) -> Schema:
    return writer.collection(table_schema(CONSTRAINTS, writer))


def _simulation(writer: Writer) -> Schema:
    return writer.collection(table_schema(SIMULATION, writer))


def _golden_patch(writer: Writer) -> Schema:
    return _golden(writer, "string")


def _golden_trajectory(writer: Writer) -> Schema:
    return _golden(writer, "string", "object")


def _golden(writer: Writer, *types: str) -> Schema:
    inline = {"properties": {"inline": {"type": [*types, "null"]}}}
    return writer.collection(require_all(table_schema(GOLDEN_TEXT, writer), inline))


def _golden_command(writer: Writer) -> Schema:
    return either(NOT_BLANK, table_schema(GOLDEN_COMMAND, writer))


def _graders(writer: Writer) -> Schema:
    return writer.collection({"type": "array", "items": writer.define("grader", grader_schema)})


def _grader_name(_writer: Writer) -> Schema:
    slug = {"type": "string", "pattern": f"^{SLUG.pattern}$"}
    return either(slug, deprecated(NOT_BLANK, "write a name of a-z, 0-9 and -"))


def _grader_scope(writer: Writer) -> Schema:
    names = either(NOT_BLANK, {"type": "array", "items": NOT_BLANK, "minItems": 1})
    agent = {"type": "object", "properties": {"agent": names}, "required": ["agent"]}
    closed = {**agent, "patternProperties": {"^x-": True}, "additionalProperties": False}
    described = {**NOT_BLANK, "description": "all, main, subagents, or the name of an agent"}
    return writer.collection(either(described, closed))


def _stimuli(writer: Writer) -> Schema:
    return {"type": "array", "items": _mapping(STIMULUS, writer, "stimulus")}


def _template(writer: Writer) -> Schema:
    return table_schema(UNNAMED, writer)


def _stimuli_from(writer: Writer) -> Schema:
    rows = _mapping(ROWS, writer, "rows")
    return either(rows, {"type": "array", "items": rows})


def _suite(writer: Writer) -> Schema:
    return table_schema(SUITE, writer)


def _backend(writer: Writer) -> Schema:
    return either(NOT_BLANK, table_schema(BACKEND, writer))


def _backend_args(_writer: Writer) -> Schema:
    text = {"type": "string"}
    return {"type": "object", "additionalProperties": either(text, {"type": "array", "items": text})}


def _variant(writer: Writer) -> Schema:
    return table_schema(VARIANT, writer)


def _axis(writer: Writer) -> Schema:
    return table_schema(AXIS, writer)


def _axis_values(writer: Writer) -> Schema:
    label = {"type": "string", "pattern": r"^[^,=]*[^,=\s][^,=]*$"}
    labelled = {"type": "object", "minProperties": 1, "maxProperties": 1, "propertyNames": label}
    value = either(writer.scalar(label), {"type": ["number", "boolean", "null"]}, labelled)
    return {"type": "array", "items": value, "minItems": 1}


def _baseline(_writer: Writer) -> Schema:
    label = {"type": ["string", "number", "boolean"]}
    return either(NOT_BLANK, {"type": "object", "additionalProperties": label})


PARTS: Mapping[str, Part] = MappingProxyType(
    {
        "attachment": _attachment,
        "axis": _axis,
        "axis-values": _axis_values,
        "backend": _backend,
        "backend-args": _backend_args,
        "baseline": _baseline,
        "constraints": _constraints,
        "environment": _environment,
        "executor": executor_schema,
        "file": _file,
        "git": _git,
        "golden-command": _golden_command,
        "golden-patch": _golden_patch,
        "golden-trajectory": _golden_trajectory,
        "grader-config": _mapping_value,
        "grader-name": _grader_name,
        "grader-scope": _grader_scope,
        "grader-type": grader_type_schema,
        "graders": _graders,
        "grading-environment": _grading_environment,
        "mapping": _mapping_value,
        "mcp-server": _mcp_server,
        "named-environment": _named_environment,
        "provider": provider_schema,
        "simulation": _simulation,
        "stimuli": _stimuli,
        "stimuli-from": _stimuli_from,
        "suite": _suite,
        "template": _template,
        "variant": _variant,
        "variant-environment": _variant_environment,
    }
)
"""What `RawShape.part` may name."""
