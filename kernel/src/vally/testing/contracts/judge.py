"""The contract of judges."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.errors import JudgeError
from vally.testing.contracts.case import Case
from vally.testing.contracts.executor import SECRET, SECRET_VARIABLE
from vally.testing.hosts import plugin_host

if TYPE_CHECKING:
    from vally.model.evalspec import ProviderConfig
    from vally.records import JudgeSpec
    from vally.run.judging import JudgeReply, JudgeRequest

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"score": {"type": "integer", "minimum": 0, "maximum": 5}, "reason": {"type": "string"}},
    "required": ["score", "reason"],
    "additionalProperties": False,
}
TOOL = "submit_grade"
MAX_REMINDERS = 2
VALID = {"score": 4, "reason": "good"}
REFUSED = {"score": 0, "reason": "refused by the check"}


@dataclass(frozen=True, slots=True)
class Answer:
    """The model calls the tool with these arguments."""

    args: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Text:
    """The model answers with text instead of a call."""

    text: str = "I would say four."


@dataclass(frozen=True, slots=True)
class Status:
    """The endpoint answers with this HTTP status."""

    code: int


@dataclass(frozen=True, slots=True)
class Hang:
    """The endpoint does not answer at all."""


ModelReply = Answer | Text | Status | Hang
Serve = Callable[[Sequence[ModelReply]], AbstractContextManager["ProviderConfig | None"]]


def judge_contract(factory: JudgeSpec | Callable[[], Any], serve: Serve) -> list[Case]:
    """Cases every judge passes.

    `serve(replies)` is a context manager that makes an endpoint give these replies, one per call of the model and the
    last one for ever, and yields the provider to configure; its key is the variable CONTRACT_API_KEY. The replies
    also stand as a script in the question, so that `serve` need only run a `MockLlm` and yield its address.
    """
    checks = {
        "valid": _valid,
        "reminded": _reminded,
        "malformed": _malformed,
        "timed-out": _timed_out,
        "rate-limited-then-fine": _rate_limited,
        "unreachable": _unreachable,
        "key-not-in-errors": _key_not_in_errors,
        "concurrent": _concurrent,
        "shutdown-twice": _shutdown_twice,
        "shutdown-before-start": _shutdown_before_start,
    }
    return [Case(name, check, _Subject(factory, serve)) for name, check in checks.items()]


class _Subject:
    """The judge under contract."""

    def __init__(self, factory: JudgeSpec | Callable[[], Any], serve: Serve) -> None:
        self._factory = factory
        self._serve = serve

    def create(self) -> Any:
        from vally.records import JudgeSpec

        if isinstance(self._factory, JudgeSpec):
            return plugin_host(self._factory).create(self._factory)
        return self._factory()

    @contextmanager
    def configured(self, *replies: ModelReply) -> Iterator[Any]:
        """A judge whose endpoint gives these replies."""
        from vally.run.providers import resolve_provider

        with self._serve(replies) as provider:
            judge = self.create()
            judge.configure(None if provider is None else resolve_provider(provider, {SECRET_VARIABLE: SECRET}))
            yield judge

    async def ask(self, *replies: ModelReply, **fields: Any) -> JudgeReply:
        """Ask one question."""
        with self.configured(*replies) as judge:
            try:
                reply: JudgeReply = await judge.judge(_request(replies, **fields))
            finally:
                await judge.shutdown()
        return reply

    async def failure(self, *replies: ModelReply, **fields: Any) -> JudgeError:
        """Ask one question that must fail."""
        try:
            reply = await self.ask(*replies, **fields)
        except JudgeError as error:
            return error
        raise AssertionError(f"a JudgeError was expected, not {reply.args}")


def _check(args: Mapping[str, object]) -> str | None:
    return "score 0 is not allowed" if args.get("score") == 0 else None


def _script(replies: Sequence[ModelReply]) -> str:
    """The replies as a script of the mock model server."""
    return "\n".join([*map(_line, replies[:-1]), *[_line(replies[-1], last=True)] * (MAX_REMINDERS + 1)])


def _line(reply: ModelReply, *, last: bool = False) -> str:
    if isinstance(reply, Answer):
        return f"!tool {TOOL} {json.dumps(reply.args)}"
    if isinstance(reply, Text):
        return f"!say {reply.text}"
    if isinstance(reply, Status):
        return f"!fail {reply.code}" + ("" if last else " times=1")
    return "!sleep 600"


def _request(replies: Sequence[ModelReply], **fields: Any) -> JudgeRequest:
    from vally.run.judging import JudgeRequest, ToolSchema

    facts = {
        "model": "contract-model",
        "system_message": "You grade.",
        "user_message": f"Grade this.\n\n{_script(replies)}",
        "max_reminders": MAX_REMINDERS,
        "tool": ToolSchema(name=TOOL, description="Submit the grade.", parameters=SCHEMA),
        "check": _check,
        "timeout_s": 30.0,
        **fields,
    }
    return JudgeRequest(**facts)


async def _valid(subject: _Subject, _: Path) -> None:
    reply = await subject.ask(Answer(VALID))
    assert dict(reply.args) == VALID
    assert reply.reminders_used == 0
    assert reply.usage is not None, "usage was not counted"
    assert reply.usage.input_tokens > 0, "no input tokens were counted"
    assert reply.usage.output_tokens > 0, "no output tokens were counted"


async def _reminded(subject: _Subject, _: Path) -> None:
    once = await subject.ask(Answer(VALID))
    reply = await subject.ask(Text(), Answer(REFUSED), Answer(VALID))
    assert dict(reply.args) == VALID
    assert reply.reminders_used == 2, f"reminders_used is {reply.reminders_used}"
    assert once.usage is not None
    assert reply.usage is not None
    assert reply.usage.input_tokens > once.usage.input_tokens, "tokens of the reminders were not counted"


async def _malformed(subject: _Subject, _: Path) -> None:
    for bad in (Text(), Answer({"score": 9, "reason": "too much"}), Answer(REFUSED)):
        error = await subject.failure(bad)
        assert error.kind == "malformed", f"kind is {error.kind} for {bad}"
        assert error.usage, "tokens of the failed call were not counted"


async def _timed_out(subject: _Subject, _: Path) -> None:
    began = time.monotonic()
    error = await subject.failure(Hang(), timeout_s=1.0)
    assert error.kind == "timeout", f"kind is {error.kind}"
    assert time.monotonic() - began < 10, "the call did not end at its limit"


async def _rate_limited(subject: _Subject, _: Path) -> None:
    reply = await subject.ask(Status(429), Answer(VALID))
    assert dict(reply.args) == VALID
    assert reply.reminders_used == 0, "a retry is no reminder"


async def _unreachable(subject: _Subject, _: Path) -> None:
    error = await subject.failure(Status(500), timeout_s=3.0)
    assert error.kind in ("transport", "timeout"), f"kind is {error.kind}"


async def _key_not_in_errors(subject: _Subject, _: Path) -> None:
    for code in (401, 400):
        error = await subject.failure(Status(code), timeout_s=3.0)
        assert error.kind in ("transport", "unavailable"), f"kind is {error.kind} for {code}"
        assert SECRET not in f"{error} {error!r} {error.hints}", "the key is in the error"


async def _concurrent(subject: _Subject, _: Path) -> None:
    import anyio

    replies: list[JudgeReply] = []
    with subject.configured(Answer(VALID)) as judge:

        async def ask() -> None:
            replies.append(await judge.judge(_request([Answer(VALID)])))

        async with anyio.create_task_group() as group:
            for _number in range(5):
                group.start_soon(ask)
        await judge.shutdown()
    assert [dict(reply.args) for reply in replies] == [VALID] * 5


async def _shutdown_twice(subject: _Subject, _: Path) -> None:
    with subject.configured(Answer(VALID)) as judge:
        await judge.shutdown()
        await judge.shutdown()


async def _shutdown_before_start(subject: _Subject, _: Path) -> None:
    # One that fails to start is shut down too.
    await subject.create().shutdown()
