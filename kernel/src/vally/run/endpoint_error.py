"""Why an endpoint of a model gave no answer: a status, a broken connection, or an error that is told as an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from vally.text.display import clip_middle, strip_controls

RETRY_STATUSES = frozenset({408, 409, 429})
GATEWAY_STATUS = 502
"""What an error counts as that names no status: one of the gateway, which may pass."""
_LONGEST_PROBLEM = 500
_STATUS_OF_WORD = {
    "rate_limit": 429,
    "too_many_requests": 429,
    "resource_exhausted": 429,
    "quota": 429,
    "authentication": 401,
    "unauthenticated": 401,
    "unauthorized": 401,
    "invalid_api_key": 401,
    "permission": 403,
    "forbidden": 403,
    "billing": 402,
    "payment": 402,
    "credits": 402,
    "not_found": 404,
    "too_large": 413,
    "invalid": 400,
    "bad_request": 400,
    "unprocessable": 422,
    "context_length": 400,
    "content_filter": 400,
    "content_policy": 400,
    "overloaded": 529,
    "unavailable": 503,
    "timeout": 504,
    "deadline": 504,
    "server_error": 500,
    "internal": 500,
    "api_error": 500,
}
"""Parts of the names that endpoints give to errors; the first that fits counts."""


class EndpointError(Exception):
    """The endpoint gave no answer. The message is one line without secrets.

    `retry_after_s` is the wait that it asked for; `status` and `body` are those of its HTTP answer, if there was one.
    `answer` is the one in which an error was told, which may tell what it cost, too.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        retry_after_s: float | None = None,
        status: int | None = None,
        body: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.status = status
        self.body = body
        self.answer: Mapping[str, Any] | None = None

    @classmethod
    def of_status(
        cls, status: int, body: str, headers: Mapping[str, str], secrets: Sequence[str] = ()
    ) -> EndpointError:
        """The error of an HTTP status; the body says why, as far as it is JSON with a message, or text."""
        message = one_line(_reason(_parsed(body)), secrets)
        return cls(
            f"HTTP {status}" + (f": {message}" if message else ""),
            retryable=status in RETRY_STATUSES or status >= 500,
            retry_after_s=_retry_after(headers),
            status=status,
            body=body,
        )

    @classmethod
    def of_answer(
        cls, answer: Mapping[str, Any], headers: Mapping[str, str], secrets: Sequence[str] = ()
    ) -> EndpointError | None:
        """The error that is told as an answer, as routers of models tell that of the model behind them.

        It stands in the answer or in its choice, maybe after half of what was to be said. Its code or the name of its
        type says which status it would have had. None when there is no error.
        """
        choices = answer.get("choices")
        choice = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
        error = choice.get("error") or answer.get("error")
        failed = choice.get("error") or choice.get("finish_reason") == "error" or answer.get("status") == "failed"
        if not failed and (not error or _says_something(answer, choice)):
            return None
        error = error or "the model's answer broke off with an error"
        found = cls.of_status(_status(error), json.dumps({"error": error}, default=str), headers, secrets)
        found.answer = answer
        return found

    @classmethod
    def of_stream(cls, text: str, headers: Mapping[str, str], secrets: Sequence[str] = ()) -> EndpointError | None:
        """The error that is told in a stream of events, after what may be a half answer. None when there is none."""
        for line in text.splitlines():
            name, _, data = line.partition(":")
            event = _mapping(_parsed(data)) if name == "data" else {}
            error = event.get("error") or (event if event.get("type") == "error" else None)
            told = _mapping(event.get("response")) or {**event, "error": error}
            found = cls.of_answer(told, headers, secrets)
            if found is not None:
                return found
        return None

    @classmethod
    def of_connection(cls, error: BaseException, secrets: Sequence[str] = ()) -> EndpointError:
        """The error of a connection that could not be made, or broke."""
        chain = [error]
        while (before := chain[-1].__cause__ or chain[-1].__context__) is not None:
            chain.append(before)
        # The deepest exception with a text says most; libraries put general words around it.
        texts = [one_line(str(item), secrets) for item in chain[1:]]
        text = next((text for text in reversed(texts) if text), None)
        return cls(
            f"connection failed: {text or one_line(str(error), secrets) or type(chain[-1]).__name__}", retryable=True
        )


def endpoint_answer(answer: object, headers: Mapping[str, str], secrets: Sequence[str] = ()) -> dict[str, Any]:
    """The JSON object that an endpoint answered, given as such, as text or as bytes.

    Raises `EndpointError`: that of the endpoint, when it tells one so or in a stream, else one that may pass.
    """
    if isinstance(answer, bytes):
        # Small servers cut characters between the tokens of a model.
        answer = answer.decode("utf-8-sig", "replace")
    if isinstance(answer, str):
        try:
            answer = json.loads(answer)
        except (ValueError, RecursionError):
            told = EndpointError.of_stream(str(answer), headers, secrets)
            raise told or EndpointError("the endpoint's answer is not JSON", retryable=True) from None
    if not isinstance(answer, dict):
        raise EndpointError("the endpoint's answer is not a JSON object", retryable=True)
    told = EndpointError.of_answer(answer, headers, secrets)
    if told is not None:
        raise told
    return answer


def without_secrets(text: str, secrets: Sequence[str]) -> str:
    """The text without the secrets of its endpoint, of which one may begin another."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "<redacted>")
    return text


def one_line(text: str, secrets: Sequence[str] = ()) -> str:
    """A text for a message: one line without secrets, cut in the middle."""
    line = " ".join(strip_controls(without_secrets(text, secrets)).split())
    return clip_middle(line, _LONGEST_PROBLEM, _LONGEST_PROBLEM * 3 // 4, _LONGEST_PROBLEM // 8)


def _says_something(answer: Mapping[str, Any], choice: Mapping[str, Any]) -> bool:
    """Whether there is an answer beside an error, in chat completions, responses or messages."""
    message = _mapping(choice.get("message"))
    said = [message.get(key) for key in ("content", "tool_calls", "refusal", "function_call")]
    return any(said) or bool(answer.get("output") or answer.get("content"))


def _status(error: object) -> int:
    """The HTTP status that an error names by a number, or by a word."""
    if not isinstance(error, Mapping):
        return GATEWAY_STATUS
    metadata = _mapping(error.get("metadata"))
    names = [error.get("code"), error.get("status"), error.get("type"), metadata.get("error_type")]
    for name in names:
        code = int(name) if isinstance(name, str) and re.fullmatch(r"[0-9]{3}", name) else name
        if isinstance(code, int) and 400 <= code <= 599:
            return code
    for name in (str(name).lower() for name in names if isinstance(name, str)):
        status = next((status for word, status in _STATUS_OF_WORD.items() if word in name), None)
        if status is not None:
            return status
    return GATEWAY_STATUS


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _parsed(body: str) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body


def _reason(body: object) -> str:
    """The message in a body of an error: `error.message`, `error`, `message`, `detail`, or short text."""
    if isinstance(body, Mapping):
        for key in ("error", "message", "detail"):
            if body.get(key):
                return _with_cause(_reason(body[key]), body)
        return json.dumps(body, default=str)
    if isinstance(body, list):
        first = _mapping(body[0]) if body else {}
        return _reason(first) if first.get("error") else json.dumps(body, default=str)
    text = "" if body is None else str(body)
    return "" if re.match(r"\s*<(!doctype|html)", text, re.IGNORECASE) else text


def _with_cause(message: str, error: Mapping[str, Any]) -> str:
    """A message of a router, which often says only that there is an error, and what the model behind it said."""
    raw = _mapping(error.get("metadata")).get("raw")
    cause = _reason(_parsed(raw)) if isinstance(raw, str) else ""
    return f"{message}: {cause}" if cause and cause not in message else message


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that an endpoint asks to wait, by `Retry-After` as a number or a date."""
    value = (headers.get("retry-after") or "").strip()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", value):
        return float(value)
    if not value:
        return None
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
