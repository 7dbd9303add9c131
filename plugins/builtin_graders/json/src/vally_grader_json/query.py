"""JSONPath queries of RFC 9535."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError

from vally import GraderError, one_line_evidence
from vally_grader_json.query_patterns import Match, Search


def query_problem(query: str) -> str | None:
    """Why a query is not valid, or None."""
    try:
        _environment().compile(query)
    except JSONPathError as error:
        return _reason(error)
    except RecursionError:
        return "it is nested too deeply"
    return None


def selected(query: str, document: Any) -> Iterator[Any]:
    """The values of the nodes that a valid query selects.

    Raises `GraderError` when the document is too deep, `RegexTimeout` and `RegexError` for the patterns in the query.
    """
    try:
        for node in _environment().finditer(query, document):
            yield node.value
    except (JSONPathError, RecursionError) as error:
        reason = _reason(error) if isinstance(error, JSONPathError) else "it is nested too deeply"
        raise GraderError(f"Query {query} cannot be evaluated: {reason}") from None


def _environment() -> JSONPathEnvironment:
    environment = JSONPathEnvironment()
    environment.function_extensions |= {"match": Match(), "search": Search()}
    return environment


def _reason(error: JSONPathError) -> str:
    # Its text would go on over several lines, which differ between versions of the library.
    return one_line_evidence(str(error.args[0]) if error.args else type(error).__name__)
