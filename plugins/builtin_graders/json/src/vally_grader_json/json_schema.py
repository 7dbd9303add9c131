"""`json-schema`: the answer, or a file, is JSON that satisfies a JSON Schema."""

from __future__ import annotations

from itertools import islice

from vally import GraderError, GraderInput, GraderResult, describe_grader_value
from vally_grader_json.config import JsonSchemaConfig
from vally_grader_json.documents import Document, NoDocument, read_document
from vally_grader_json.schema import Violation, violations

KEYWORD = "json-schema"
MAX_DETAILS = 1000
"""Violations that a result lists."""


class JsonSchema:
    """Validates the document; the first violation is the evidence, each is a nested result."""

    def grade(self, input: GraderInput[JsonSchemaConfig]) -> GraderResult:
        try:
            document = read_document(input)
        except NoDocument as error:
            return error.result(KEYWORD)
        try:
            found = list(islice(violations(input.config.schema_document, document.value), MAX_DETAILS + 1))
        except RecursionError:
            raise GraderError(f"{document.label} or its schema is nested too deeply to be checked") from None
        return _result(document, found)

    def default_name(self, config: JsonSchemaConfig) -> str:
        return f"{KEYWORD} {describe_grader_value(config.target)}"


def _result(document: Document, found: list[Violation]) -> GraderResult:
    if not found:
        evidence = f"{document.label} satisfies the schema"
        return GraderResult.verdict(True, evidence, name=KEYWORD, metadata=document.metadata)
    first = found[0]
    details = [GraderResult.verdict(False, item.message, name=item.pointer) for item in found[:MAX_DETAILS]]
    return GraderResult.verdict(
        False,
        f"{document.label} violates the schema at {first.pointer}: {first.message}",
        name=KEYWORD,
        metadata={**document.metadata, "violations": len(details), "truncated": len(found) > MAX_DETAILS},
        details=details,
    )
