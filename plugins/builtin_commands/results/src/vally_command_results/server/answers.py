"""Answers of the API: JSON with an ETag, and errors in one form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from vally_command_results.query.errors import QueryError
from vally_command_results.server.guard import error_body


def etag_of(*parts: object) -> str:
    """A weak ETag of what an answer depends on."""
    return f'W/"{hashlib.sha256(repr(parts).encode()).hexdigest()[:20]}"'


def is_current(request: Request, etag: str) -> bool:
    """Whether the client has this answer already."""
    known = request.headers.get("if-none-match", "")
    return known == "*" or etag.removeprefix("W/") in [tag.strip().removeprefix("W/") for tag in known.split(",")]


def not_modified(etag: str) -> Response:
    """The answer for a client that has it."""
    return Response(status_code=304, headers={"ETag": etag, "Cache-Control": "no-cache"})


def json_answer(document: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON document; raises `ValueError` for numbers that JSON lacks, which no store holds."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Response(text.encode("utf-8", "replace"), status, dict(headers or {}), "application/json")


def error_answer(error: QueryError) -> Response:
    """An error in the form of all errors."""
    return Response(error_body(error.code, error.message), error.status, media_type="application/json")


def problems_of(errors: list[Any]) -> QueryError:
    """What is wrong with parameters, in one line that names each."""
    lines = []
    for item in errors:
        name = ".".join(str(part) for part in item["loc"][1:2]) or "parameters"
        what = "unknown parameter" if item["type"] == "extra_forbidden" else item["msg"].removeprefix("Value error, ")
        lines.append(f"{name}: {what}")
    return QueryError("invalid_params", 400, "; ".join(dict.fromkeys(lines)))
