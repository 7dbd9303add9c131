"""The records of this plugin."""

from __future__ import annotations

from collections.abc import Iterator

from vally import GraderSpec, hookimpl

vally_api = 1
_PACKAGE = "vally_grader_json"


@hookimpl
def vally_graders() -> Iterator[GraderSpec]:
    """One record per keyword. What an entry needs depends on its `path`, so its config says it."""
    yield GraderSpec(
        name="json-schema",
        summary="the answer, or a file, is JSON that satisfies a JSON Schema",
        factory=f"{_PACKAGE}.json_schema:JsonSchema",
        config=f"{_PACKAGE}.config:JsonSchemaConfig",
        hints=("json",),
    )
    yield GraderSpec(
        name="json-path",
        summary="a JSONPath query over the answer, or over a file, gives an expected value",
        factory=f"{_PACKAGE}.json_path:JsonPath",
        config=f"{_PACKAGE}.config:JsonPathConfig",
    )
