"""Questions to a judge over real HTTP, for the tests of judges behind an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import pytest

from vally import JudgeError, JudgeReply, JudgeRequest, ProviderConfig, ToolSchema
from vally.testing import MockLlm

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "number", "maximum": 5}},
    "required": ["score"],
    "additionalProperties": False,
}
KEY = "the-secret-key-1"
CALL = '!tool submit_grade {"score": 4}'


def refuse_three(args: Mapping[str, object]) -> str | None:
    return "three is not allowed" if args.get("score") == 3 else None


def request(script: str = "", **fields: Any) -> JudgeRequest:
    tool = ToolSchema(name="submit_grade", description="Submit the grade.", parameters=SCHEMA)
    facts = {"model": "m", "system_message": "You grade.", "user_message": f"Grade.\n{script}", "tool": tool}
    return JudgeRequest(**{**facts, "check": refuse_three, **fields})


def sent(server: MockLlm) -> list[Any]:
    """The bodies of all requests."""
    return [request.body for request in server.requests]


class Questions:
    """Asks judges that `make` makes."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def ask(self, configured: ProviderConfig, *requests: JudgeRequest) -> JudgeReply:
        """Ask one judge several questions and return the last reply."""
        judge = self._make()
        judge.configure(configured)

        async def run() -> JudgeReply:
            try:
                return [await judge.judge(question) for question in requests][-1]
            finally:
                await judge.shutdown()

        return anyio.run(run)

    def failure(self, configured: ProviderConfig, question: JudgeRequest) -> JudgeError:
        """The error of a question, which never shows the key."""
        with pytest.raises(JudgeError) as caught:
            self.ask(configured, question)
        assert KEY not in f"{caught.value!r} {caught.value} {caught.value.hints}"
        return caught.value

    def preflight(self, configured: ProviderConfig) -> None:
        """Ask whether the model `m` is there."""

        async def run() -> None:
            judge = self._make()
            judge.configure(configured)
            try:
                await judge.preflight("m")
            finally:
                await judge.shutdown()

        anyio.run(run)


def needs_a_provider(make: Callable[[], Any]) -> None:
    """Check that a judge says what it lacks."""
    judge = make()
    with pytest.raises(JudgeError, match=r"needs defaults\.judge_provider"):
        judge.configure(None)
    with pytest.raises(JudgeError, match="not configured"):
        anyio.run(judge.judge, request())
