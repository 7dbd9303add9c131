"""Configs of the JSON keywords. Schemas and queries are checked here, so that a wrong one is found before any run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, PrivateAttr, model_validator

from vally import Config, NonEmpty, SpecFile, WorkspaceGlob
from vally_grader_json.parsing import InvalidJson, parse_json

Steps = tuple[str | int, ...]


class DocumentConfig(Config):
    """Where the document is: a file of the artifacts or the workspace, or else the answer."""

    path: WorkspaceGlob | None = None

    def requires_workspace(self) -> bool:
        """Whether a file is read."""
        return self.path is not None

    @property
    def target(self) -> str:
        """What the default name names."""
        return self.path or "output"


class JsonSchemaConfig(DocumentConfig):
    """A schema, written in the eval or in a JSON file beside it."""

    inline: dict[str, Any] | None = Field(default=None, alias="schema")
    schema_path: SpecFile | None = None
    _schema: Mapping[str, Any] | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _check(self) -> JsonSchemaConfig:
        if (self.inline is None) == (self.schema_path is None):
            raise ValueError("exactly one of 'schema' and 'schema_path' is required")
        if self.inline is not None:
            self._schema = checked(self.inline, "schema")
        elif self.schema_path is not None and self.schema_path.is_absolute():
            self._schema = _read_schema(self)
        return self

    @property
    def schema_document(self) -> Mapping[str, Any]:
        """The checked schema; only where the directory of the eval was known when the config was validated."""
        assert self._schema is not None
        return self._schema


class JsonPathConfig(DocumentConfig):
    """A query, and what it must give: one node with a value, or any node, or none."""

    query: NonEmpty
    equals: Any = None
    exists: bool | None = None

    @model_validator(mode="after")
    def _check(self) -> JsonPathConfig:
        from vally_grader_json.query import query_problem

        if self.compares == (self.exists is not None):
            raise ValueError("exactly one of 'equals' and 'exists' is required")
        problem = query_problem(self.query)
        if problem is not None:
            raise ValueError(f"'query' is not a valid JSONPath query: {problem}")
        return self

    @property
    def compares(self) -> bool:
        """Whether a value is expected, which may be null."""
        return "equals" in self.model_fields_set


def checked(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The schema, when it is valid; raises `ValueError` that names the place below `key`."""
    from vally_grader_json.schema import schema_problem

    problem = schema_problem(schema)
    if problem is not None:
        raise ValueError(f"'{key}{_dotted(problem.steps)}' {problem.text}")
    return schema


def _read_schema(config: JsonSchemaConfig) -> Mapping[str, Any]:
    from vally_grader_json.schema import json_pointer, schema_problem

    assert config.schema_path is not None
    try:
        schema = parse_json(config.schema_path.read_text(encoding="utf-8"))
    except InvalidJson as error:
        raise ValueError(f"'schema_path' must be a file of JSON: {error}") from None
    except UnicodeDecodeError:
        raise ValueError("'schema_path' must be a file of JSON: it is not UTF-8") from None
    except OSError as error:
        raise ValueError(f"'schema_path' cannot be read: {error.strerror or error}") from None
    if not isinstance(schema, dict):
        raise ValueError("'schema_path' must hold a JSON object")
    problem = schema_problem(schema)
    if problem is not None:
        raise ValueError(f"'schema_path' must hold a valid schema: {json_pointer(problem.steps)} {problem.text}")
    return schema


def _dotted(steps: Steps) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
