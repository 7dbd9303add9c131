"""JSON Schemas: complete, free of loose ends, and the same each time. A real validator checks them end to end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from vally import Config, DurationText, GraderSpec, JudgeSpec, OneOrMore, PluginHost, json_schema
from vally.model.config import CamelConfig
from vally.records import ExecutorSpec
from vally.spec.defaults import DEFAULTS
from vally.spec.environments import ENVIRONMENT
from vally.spec.experiment_keys import EXPERIMENT
from vally.spec.project import PROJECT
from vally.spec.scoring import SCORING
from vally.spec.spec_keys import SPEC
from vally.spec.stimuli import STIMULUS
from vally.testing import plugin_host

KINDS = ("eval", "config", "experiment", "results")


class Nested(Config):
    word: str = Field(min_length=1, pattern="^[a-z]+$")


class Settings(Config):
    """What this check takes."""

    limit: int = Field(ge=0, description="most of them")
    ratio: float = 0.5
    names: list[str] = Field(default_factory=list)
    nested: Nested | None = None
    wait: DurationText = "5s"
    older: bool = Field(default=False, deprecated="leave it out")


class Foreign:
    """A type that JSON Schema knows nothing of."""


class Odd(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True)
    thing: Foreign


class Endpoint(CamelConfig):
    region: str = "eu"


@pytest.fixture
def host() -> PluginHost:
    return plugin_host(
        GraderSpec(name="checks", summary="checks things", factory=dict, config=Settings),
        GraderSpec(name="bare", summary="takes nothing", factory=dict),
        GraderSpec(name="odd", summary="takes odd things", factory=dict, config=Odd),
        GraderSpec(name="files", summary="looks at files", factory=dict, requires_workspace=True),
        ExecutorSpec(name="agent", summary="an agent", factory=dict, config=Endpoint),
        JudgeSpec(name="judge", summary="a judge", factory=dict, provider_types=("own",), config=Endpoint),
    )


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from parts(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from parts(item)


@pytest.mark.parametrize("kind", KINDS)
def test_every_reference_leads_somewhere_and_nothing_is_left_over(kind: str, host: PluginHost) -> None:
    schema = json_schema(kind, host=host)
    used = {part["$ref"] for part in parts(schema) if "$ref" in part}
    assert used == {f"#/$defs/{name}" for name in schema["$defs"]}


@pytest.mark.parametrize("kind", KINDS)
def test_the_head_names_dialect_and_identity(kind: str, host: PluginHost) -> None:
    schema = json_schema(kind, host=host)
    assert list(schema)[:2] == ["$schema", "$id"]
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"https://vally.example/schema/{kind}/0.json"


@pytest.mark.parametrize("kind", KINDS)
def test_equal_plugins_give_the_same_text(kind: str, host: PluginHost) -> None:
    records = [record for name in ("grader", "executor", "judge") for record in host.records(name).values()]
    again = plugin_host(*reversed(records))
    assert json.dumps(json_schema(kind, host=host)) == json.dumps(json_schema(kind, host=again))


def test_an_unknown_kind(host: PluginHost) -> None:
    with pytest.raises(KeyError):
        json_schema("suite", host=host)


@pytest.mark.parametrize(
    ("kind", "table", "path"),
    [
        ("eval", SPEC, ()),
        ("eval", DEFAULTS, ("properties", "defaults")),
        ("eval", SCORING, ("properties", "scoring", "anyOf", 0)),
        ("eval", STIMULUS, ("$defs", "stimulus")),
        ("eval", ENVIRONMENT, ("$defs", "named-environment")),
        ("config", PROJECT, ()),
        ("experiment", EXPERIMENT, ()),
    ],
    ids=lambda value: getattr(value, "title", None),
)
def test_the_keys_are_those_that_are_read(kind: str, table: Any, path: tuple[Any, ...], host: PluginHost) -> None:
    schema = json_schema(kind, host=host)
    for step in path:
        schema = schema[step]
    properties = {name for name, value in schema["properties"].items() if not value.get("deprecated")}
    assert properties == set(table.keys)
    older = {name for name, value in schema["properties"].items() if value.get("deprecated")}
    assert older == {*table.ignored, *table.renamed}
    assert all(schema["properties"][name].get("description") for name in properties)
    assert ("additionalProperties" in schema) is not table.open


def test_defaults_are_told(host: PluginHost) -> None:
    defaults = json_schema("eval", host=host)["properties"]["defaults"]["properties"]
    assert (defaults["runs"]["default"], defaults["timeout"]["default"]) == (1, "2m")


def by_type(schema: dict[str, Any], name: str) -> dict[str, Any]:
    branches = [part for part in parts(schema["$defs"]["grader"]) if "then" in part]
    (found,) = [part["then"] for part in branches if part["if"]["properties"]["type"] == {"enum": [name]}]
    result: dict[str, Any] = found
    return result


def test_the_types_are_those_that_are_installed(host: PluginHost) -> None:
    schema = json_schema("eval", host=host)
    assert schema["$defs"]["grader-type"]["anyOf"][0] == {"enum": ["bare", "checks", "files", "odd"]}
    assert by_type(schema, "checks")["description"] == "checks things"


def test_a_config_model_is_taken_over(host: PluginHost) -> None:
    schema = json_schema("eval", host=host)
    assert by_type(schema, "checks")["required"] == ["config"]
    config = schema["$defs"]["checks-config"]
    properties = config["anyOf"][0]["properties"]
    placeholder = {"$ref": "#/$defs/placeholder"}
    assert config["description"] == "What this check takes."
    assert properties["limit"] == {
        "anyOf": [{"minimum": 0, "type": "integer"}, placeholder],
        "description": "most of them",
    }
    assert properties["older"]["deprecated"] is True
    assert properties["ratio"] == {"anyOf": [{"type": "number"}, placeholder], "default": 0.5}
    assert {"$ref": "#/$defs/checks-Nested"} in properties["nested"]["anyOf"]
    assert placeholder in schema["$defs"]["checks-Nested"]["anyOf"][0]["properties"]["word"]["anyOf"]


def test_without_a_model_there_is_no_config(host: PluginHost) -> None:
    config = by_type(json_schema("eval", host=host), "bare")["properties"]["config"]
    assert config == {"type": ["object", "null"], "additionalProperties": False}


def test_a_model_that_json_schema_cannot_say_is_an_open_mapping(host: PluginHost) -> None:
    schema = json_schema("eval", host=host)
    assert schema["$defs"]["odd-config"]["anyOf"][0] == {"type": "object"}


def test_a_model_that_cannot_be_imported_is_an_open_mapping() -> None:
    host = plugin_host(GraderSpec(name="gone", summary="gone", factory=dict, config="surely_missing:Config"))
    assert json_schema("eval", host=host)["$defs"]["gone-config"]["anyOf"][0] == {"type": "object"}


def test_graders_of_files_take_neither_turn_nor_scope(host: PluginHost) -> None:
    schema = json_schema("eval", host=host)
    assert by_type(schema, "files")["properties"]["turn"] == {"type": "null"}
    assert "turn" not in by_type(schema, "bare")["properties"]


def test_executors_and_judges_bring_their_settings(host: PluginHost) -> None:
    definitions = json_schema("eval", host=host)["$defs"]
    assert "region" in definitions["agent-config"]["anyOf"][0]["properties"]
    assert "region" in definitions["provider"]["properties"]
    kinds = definitions["provider"]["properties"]["type"]["anyOf"][0]["enum"]
    assert kinds == ["openai", "azure", "anthropic", "own"]


def test_what_lays_over_an_environment_requires_nothing(host: PluginHost) -> None:
    definitions = json_schema("experiment", host=host)["$defs"]
    assert "required" not in definitions["partial-stdio-server"]
    assert "command" in json_schema("eval", host=host)["$defs"]["stdio-server"]["required"]


class OneText(Config):
    words: Annotated[list[str], OneOrMore]


def test_a_list_that_may_be_one_text() -> None:
    made = OneText.model_json_schema()["properties"]["words"]["anyOf"]
    assert made == [{"type": "string"}, {"items": {"type": "string"}, "minItems": 1, "type": "array"}]


def test_records_name_what_is_always_there(host: PluginHost) -> None:
    definitions = json_schema("results", host=host)["$defs"]
    trial = definitions["TrialResult"]
    assert {"type", "runId", "model", "trajectory"} <= set(trial["required"])
    assert "seed" not in trial["required"]
    assert trial["properties"]["seed"] == {"type": "integer"}
    assert {"type": "null"} in trial["properties"]["trajectory"]["anyOf"]
    assert "workspacePatch" not in definitions["Trajectory"]["properties"]
