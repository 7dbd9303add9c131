"""`json-path`: a JSONPath query over the answer, or over a file, gives an expected value."""

from __future__ import annotations

from typing import Any

from vally import GraderError, GraderInput, GraderResult, compact_json, describe_grader_value
from vally_grader_json.config import JsonPathConfig
from vally_grader_json.documents import Document, NoDocument, read_document
from vally_grader_json.equality import equal
from vally_grader_json.query import selected

KEYWORD = "json-path"


class JsonPath:
    """Evaluates the query and compares what it selects."""

    def grade(self, input: GraderInput[JsonPathConfig]) -> GraderResult:
        try:
            document = read_document(input)
        except NoDocument as error:
            return error.result(KEYWORD)
        passed, evidence = _judged(input.config, document)
        return GraderResult.verdict(passed, evidence, name=KEYWORD, metadata=document.metadata)

    def default_name(self, config: JsonPathConfig) -> str:
        return f"{KEYWORD} {describe_grader_value(config.target)}"


def _judged(config: JsonPathConfig, document: Document) -> tuple[bool, str]:
    values = list(selected(config.query, document.value))
    if not config.compares:
        wanted = "at least 1" if config.exists else "none"
        return bool(values) is config.exists, f"Query {config.query} selected {len(values)} node(s) (expected {wanted})"
    if len(values) != 1:
        return False, f"Query {config.query} selected {len(values)} node(s) (expected exactly 1)"
    shown = f"{compact_json(values[0])} (expected {compact_json(config.equals)})"
    return _equal(config, values[0]), f"Query {config.query} selected {shown}"


def _equal(config: JsonPathConfig, value: Any) -> bool:
    try:
        return equal(value, config.equals)
    except RecursionError:
        raise GraderError(f"What query {config.query} selected is nested too deeply to be compared") from None
