"""One question to a judge: answers are checked, reminders given, transport failures retried, tokens counted."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from vally.errors import JudgeError
from vally.run.judging import CallTokens, JudgeReply
from vally.text.display import clip_middle, strip_controls

if TYPE_CHECKING:
    from vally.model.trajectory import Cost
    from vally.run.judging import JudgeRequest

RETRY_DELAYS_S = (1.0, 2.0, 4.0, 8.0)
RETRY_STATUSES = frozenset({408, 409, 429})
JITTER = 0.2
_LONGEST_PROBLEM = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedCall:
    """One call of the tool: its arguments, or why they cannot be read."""

    arguments: Mapping[str, object] | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAnswer:
    """One answer of the model. `problem` says why there is no call in it; `usage` is None when nothing was told."""

    calls: tuple[SubmittedCall, ...] = ()
    problem: str | None = None
    usage: CallTokens | None = None
    cost: Cost | None = None


_CONTENT_KEYS = ("choices", "output", "content")
"""Where answers of chat completions, responses and messages have what was said."""


class EndpointError(Exception):
    """The endpoint gave no answer. The message is one line without secrets.

    `retry_after_s` is the wait that it asked for; `status` and `body` are those of its HTTP answer, if there was one.
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

    @classmethod
    def of_status(
        cls, status: int, body: str, headers: Mapping[str, str], secrets: Sequence[str] = ()
    ) -> EndpointError:
        """The error of an HTTP status; the body says why, as far as it is JSON with a message, or text."""
        message = _one_line(_reason(_parsed(body)), secrets)
        return cls(
            f"HTTP {status}" + (f": {message}" if message else ""),
            retryable=status in RETRY_STATUSES or status >= 500,
            retry_after_s=_retry_after(headers),
            status=status,
            body=body,
        )

    @classmethod
    def of_answer(
        cls, answer: Mapping[str, Any], body: str, headers: Mapping[str, str], secrets: Sequence[str] = ()
    ) -> EndpointError | None:
        """The error that stands in an answer of its own, as routers of models tell that of the model behind them.

        None when the answer has content. An error that names no HTTP status counts as one of the gateway, 502.
        """
        error = answer.get("error")
        if not error or any(answer.get(key) for key in _CONTENT_KEYS):
            return None
        code = error.get("code") if isinstance(error, Mapping) else None
        status = code if isinstance(code, int) and 400 <= code <= 599 else 502
        return cls.of_status(status, body, headers, secrets)

    @classmethod
    def of_connection(cls, error: BaseException, secrets: Sequence[str] = ()) -> EndpointError:
        """The error of a connection that could not be made, or broke."""
        chain = [error]
        while (before := chain[-1].__cause__ or chain[-1].__context__) is not None:
            chain.append(before)
        # The deepest exception with a text says most; libraries put general words around it.
        texts = [_one_line(str(item), secrets) for item in chain[1:]]
        text = next((text for text in reversed(texts) if text), None)
        return cls(
            f"connection failed: {text or _one_line(str(error), secrets) or type(chain[-1]).__name__}", retryable=True
        )


class JudgeConversation(Protocol):
    """A conversation in the dialect of one endpoint."""

    async def ask(self) -> JudgeAnswer:
        """Send the conversation so far; raises `EndpointError`."""
        ...

    def remind(self, problems: Sequence[str]) -> None:
        """Append the last answer and what was wrong with it: one problem per call, or the only one."""
        ...


async def ask_judge(request: JudgeRequest, conversation: JudgeConversation) -> JudgeReply:
    """Ask until an answer holds a valid call. Raises `JudgeError`, with what the call has spent."""
    call = _JudgeCall(request, conversation)
    started = anyio.current_time()
    with anyio.move_on_after(request.timeout_s):
        try:
            args, reminders = await call.valid_arguments()
        except JudgeError:
            raise
        except Exception as error:
            raise call.error(str(error) or type(error).__name__, "transport") from error
        return JudgeReply(
            args=args,
            latency_ms=round((anyio.current_time() - started) * 1000),
            reminders_used=reminders,
            usage=call.tokens,
            cost=call.cost,
            model=request.model,
        )
    raise call.error(f"no valid answer within {request.timeout_s:g}s", "timeout")


@dataclass(slots=True)
class _JudgeCall:
    request: JudgeRequest
    conversation: JudgeConversation
    tokens: CallTokens | None = None
    cost: Cost | None = None
    _deadline: float = field(init=False)

    def __post_init__(self) -> None:
        self._deadline = anyio.current_time() + self.request.timeout_s

    async def valid_arguments(self) -> tuple[Mapping[str, object], int]:
        reminders = 0
        while True:
            answer = await self._answer()
            problems = []
            for call in answer.calls:
                problem = call.problem or self._problem(call.arguments or {})
                if problem is None:
                    return dict(call.arguments or {}), reminders
                problems.append(problem)
            if not problems:
                problems = [answer.problem or f"it did not call {self.request.tool.name}"]
            if reminders == self.request.max_reminders:
                raise self.error(problems[0], "malformed")
            reminders += 1
            self.conversation.remind(problems)

    def error(self, message: str, kind: Any) -> JudgeError:
        used = self.tokens
        usage = None if used is None else {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
        return JudgeError(message, kind=kind, usage=usage, cost=self.cost)

    def _problem(self, arguments: Mapping[str, object]) -> str | None:
        return schema_problem(self.request.tool.parameters, arguments) or self.request.check(arguments)

    async def _answer(self) -> JudgeAnswer:
        delays = iter(RETRY_DELAYS_S)
        while True:
            try:
                answer = await self.conversation.ask()
            except EndpointError as error:
                delay = self._delay(error, next(delays, None))
                if delay is None:
                    raise self.error(error.message, "transport") from error
                await anyio.sleep(delay)
            else:
                self._count(answer)
                return answer

    def _delay(self, error: EndpointError, default: float | None) -> float | None:
        """Seconds until the next attempt; None when there is none, because it would not fit or would not help."""
        if not error.retryable or default is None:
            return None
        left = self._deadline - anyio.current_time()
        told = error.retry_after_s
        if told is not None and told < left:
            return told
        delay = default * random.uniform(1 - JITTER, 1 + JITTER)
        return delay if delay < left else None

    def _count(self, answer: JudgeAnswer) -> None:
        if answer.usage is not None:
            before = self.tokens or CallTokens()
            self.tokens = CallTokens(
                input_tokens=before.input_tokens + answer.usage.input_tokens,
                output_tokens=before.output_tokens + answer.usage.output_tokens,
            )
        if answer.cost is not None:
            amount = answer.cost.amount + (0 if self.cost is None else self.cost.amount)
            self.cost = answer.cost.model_copy(update={"amount": amount})


def schema_problem(schema: Mapping[str, Any], arguments: Mapping[str, object]) -> str | None:
    """What of the arguments does not fit the JSON Schema; None when they fit."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(dict(schema)).iter_errors(dict(arguments)))
    if error is None:
        return None
    where = error.json_path.removeprefix("$").lstrip(".")
    return _one_line(f"{where}: {error.message}" if where else error.message)


def judge_reminder(tool: str, problem: str, *, as_json: bool = False) -> str:
    """The words in which a judge is told that its answer was not accepted."""
    wanted = (
        "Answer again with one JSON object that fits the schema, and nothing else."
        if as_json
        else f"Call {tool} exactly once, with valid arguments."
    )
    return f"Your answer was not accepted: {problem}. {wanted}"


def submitted_call(text: object) -> SubmittedCall:
    """The arguments of a call, given as JSON text or as an object."""
    value = text
    if isinstance(text, str):
        try:
            value = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            return SubmittedCall(problem=f"the arguments are not valid JSON: {_one_line(str(error))}")
    if not isinstance(value, Mapping):
        return SubmittedCall(problem="the arguments are not a JSON object")
    return SubmittedCall(arguments=value)


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not a number")


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
                return _reason(body[key])
        return json.dumps(body, default=str)
    if isinstance(body, list):
        return json.dumps(body, default=str)
    text = "" if body is None else str(body)
    return "" if re.match(r"\s*<(!doctype|html)", text, re.IGNORECASE) else text


def _one_line(text: str, secrets: Sequence[str] = ()) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "<redacted>")
    line = " ".join(strip_controls(text).split())
    return clip_middle(line, _LONGEST_PROBLEM, _LONGEST_PROBLEM * 3 // 4, _LONGEST_PROBLEM // 8)


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
