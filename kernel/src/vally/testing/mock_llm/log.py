"""The log of requests: in memory for tests, and as JSON lines in a file."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

_CREDENTIAL = re.compile(r"(proxy-)?authorization|cookie|key|.*api-key|.*token|.*secret", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MockRequest:
    """One request as it arrived, without credentials.

    Header names are lower case. `body` is the parsed JSON, or text that is none; `step` is None for what no script
    answers; `status` is that of the answer, None when the connection was reset.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    step: int | None
    status: int | None


class RequestLog:
    """Remembers every request and appends it to a file when there is one; safe for threads."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._requests: list[MockRequest] = []
        if path is not None:
            path.touch()

    @property
    def requests(self) -> tuple[MockRequest, ...]:
        """All requests so far, in the order in which they were answered."""
        with self._lock:
            return tuple(self._requests)

    def add(self, request: MockRequest) -> None:
        """Log one request."""
        with self._lock:
            if self._path is None:
                self._requests.append(request)
            else:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(_line(request))


def _line(request: MockRequest) -> str:
    fields = {name: getattr(request, name) for name in MockRequest.__slots__}
    return json.dumps(fields, ensure_ascii=True) + "\n"


def without_credentials(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers by lower-case name, those that hold credentials left out."""
    return {name.lower(): value for name, value in headers if not _CREDENTIAL.fullmatch(name)}


def path_without_credentials(target: str) -> str:
    """A request target without keys in its query."""
    parts = urlsplit(target)
    query = [(name, value) for name, value in parse_qsl(parts.query, True) if not _CREDENTIAL.fullmatch(name)]
    return parts.path + (f"?{urlencode(query)}" if query else "")
