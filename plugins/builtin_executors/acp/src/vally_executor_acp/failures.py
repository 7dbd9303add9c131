"""What an error of the agent means for the trial."""

from __future__ import annotations

import re
from collections.abc import Mapping

import acp

from vally import ExecutorError

_AUTH_REQUIRED = -32000
_DETAILS = ("details", "detail", "message", "error", "reason")
_STATUS = re.compile(
    r"(?:API Error|HTTP|Error|status(?:[_ ]?code)?|\"?code\"?)[\"'\s:=(]{0,4}([45]\d\d)\b", re.IGNORECASE
)
_NO_CONNECTION = re.compile(
    r"ECONN(?:REFUSED|RESET|ABORTED)|ENOTFOUND|ETIMEDOUT|fetch failed|connection (?:error|refused|reset|failed|lost)"
    r"|unable to connect|network error|socket hang up|failed to get response from the ai model"
    r"|empty or malformed response|incomplete json segment",
    re.IGNORECASE,
)


def request_failure(error: acp.RequestError) -> tuple[str, int | None]:
    """The text of a refused request, and the HTTP status behind it, when the agent tells one."""
    text = described(error)
    if error.code == _AUTH_REQUIRED:
        return text, 401
    if 400 <= error.code <= 599:
        return text, error.code
    data = error.data if isinstance(error.data, Mapping) else {}
    told = next((data[key] for key in ("status", "statusCode", "httpStatus") if isinstance(data.get(key), int)), None)
    return text, told if told is not None else status_in(text)


def described(error: acp.RequestError) -> str:
    """The message of a refused request, and what its data adds: agents often put the cause there alone."""
    text = str(error)
    data = error.data
    if isinstance(data, Mapping):
        data = next((data[key] for key in _DETAILS if isinstance(data.get(key), str)), None)
    return f"{text}: {data}" if isinstance(data, str) and data.strip() and data not in text else text


def status_in(text: str) -> int | None:
    """The last HTTP status of a failure that a text names."""
    found = _STATUS.findall(text)
    return int(found[-1]) if found else None


def infrastructure_error(text: str, status: int | None) -> ExecutorError | None:
    """The error of the trial when an endpoint refused or could not be reached; None for an error of the agent."""
    if status is None and not _NO_CONNECTION.search(text):
        return None
    return ExecutorError.of_provider(text, status=status)


def needs_login(error: acp.RequestError, methods: tuple[str, ...]) -> ExecutorError:
    """A session was refused, because the agent does not know who asks."""
    hint = f"; set 'auth' to one of: {', '.join(methods)}" if methods else ""
    return ExecutorError(f"the agent wants a login: {described(error)}{hint}", code="executor-unavailable")


def wants_login(error: acp.RequestError) -> bool:
    """Whether a request was refused for a missing login."""
    return error.code == _AUTH_REQUIRED
