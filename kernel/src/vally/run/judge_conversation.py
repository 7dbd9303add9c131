"""One question to a judge: answers are checked, reminders given, transport failures retried, tokens counted."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from vally.errors import JudgeError
from vally.run.endpoint_error import EndpointError, one_line
from vally.run.judging import CallTokens, JudgeReply

if TYPE_CHECKING:
    from vally.model.trajectory import Cost
    from vally.run.judging import JudgeRequest

RETRY_DELAYS_S = (1.0, 2.0, 4.0, 8.0)
JITTER = 0.2


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


class JudgeConversation(Protocol):
    """A conversation in the dialect of one endpoint."""

    async def ask(self) -> JudgeAnswer:
        """Send the conversation so far; raises `EndpointError`.

        One that has an `answer` goes to the optional method `spent`, which reads tokens and price from it.
        """
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
                spent = getattr(self.conversation, "spent", None)
                if error.answer is not None and spent is not None:
                    self._count(spent(error.answer))
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
    return one_line(f"{where}: {error.message}" if where else error.message)


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
            return SubmittedCall(problem=f"the arguments are not valid JSON: {one_line(str(error))}")
    if not isinstance(value, Mapping):
        return SubmittedCall(problem="the arguments are not a JSON object")
    return SubmittedCall(arguments=value)


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not a number")
