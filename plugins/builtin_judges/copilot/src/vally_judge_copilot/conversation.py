"""One question in a session of the runtime: each answer is a turn."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from vally import (
    CallTokens,
    Cost,
    EndpointError,
    ExecutorError,
    JudgeAnswer,
    JudgeRequest,
    SubmittedCall,
    first_result,
    judge_reminder,
    submitted_call,
)
from vally_executor_copilot_sdk import (
    COST_UNIT,
    Native,
    RuntimeClient,
    TurnWatch,
    live_event,
    of_main_agent,
    refusal_reason,
    well_formed,
    with_data,
)
from vally_judge_copilot.access import Access
from vally_judge_copilot.session import session_arguments

if TYPE_CHECKING:
    from copilot import CopilotSession

_FINAL_STATUSES = range(400, 500)
_PASSING_STATUSES = frozenset({408, 409, 425, 429})


class SessionConversation:
    """Prompts and answers of one session, which the first question opens; implements `JudgeConversation`.

    `directory` is what may be read. `close` is to be awaited at the end.
    """

    def __init__(self, request: JudgeRequest, client: RuntimeClient, access: Access, directory: Path) -> None:
        self._request = request
        self._client = client
        self._access = access
        self._directory = directory
        self._as_json = access.as_json
        self._id = str(uuid.uuid4())
        self._session: CopilotSession | None = None
        self._prompt = request.user_message
        self._watch = TurnWatch()
        self._begin()

    def _on_call(self, arguments: object) -> None:
        """Take a call of the tool."""
        self._calls.append(submitted_call(arguments))

    def _on_event(self, event: Any) -> None:
        """Take an event from the SDK."""
        self._hear(live_event(event)[0])

    def _on_unreadable(self, event: Native) -> None:
        """Take an event that the SDK could not read."""
        self._hear(with_data(event))

    async def ask(self) -> JudgeAnswer:
        """Send the prompt and wait for the end of the turn; raises `EndpointError`."""
        self._begin()
        if self._session is None:
            await self._open()
        ended = await first_result(self._send, self._client.wait_failed, self._end_when_refused)
        if isinstance(ended, ExecutorError):
            raise EndpointError(self._without_secrets(ended.message))
        # A session that is told to stop may be idle before it has answered that.
        if self._refused.is_set() or self._watch.how == "error":
            raise self._failure(self._watch.error or {})
        return self._answer()

    def remind(self, problems: Sequence[str]) -> None:
        """Say what was wrong with the last answer."""
        self._prompt = judge_reminder(self._request.tool.name, "; ".join(problems), as_json=self._as_json)

    async def close(self) -> None:
        """End the session and remove what the runtime keeps of it."""
        with anyio.CancelScope(shield=True):
            await self._client.delete_session(self._id, self._session)

    async def _open(self) -> None:
        arguments = session_arguments(self._request, self._directory, self._on_call, as_json=self._as_json)
        try:
            self._session = await self._client.create_session(
                session_id=self._id,
                on_event=self._on_event,
                on_unreadable=self._on_unreadable,
                **arguments,
                **self._access.arguments(self._request.model),
            )
        except Exception as error:
            raise await self._broken(error) from None

    async def _broken(self, error: Exception) -> EndpointError:
        failure = await self._client.failure_behind(error)
        if failure is not None:
            return EndpointError(self._without_secrets(failure.message))
        reason = refusal_reason(error)
        return EndpointError(self._without_secrets(f"the Copilot runtime refused the session: {reason}"))

    def _begin(self) -> None:
        self._watch.begin()
        self._calls: list[SubmittedCall] = []
        self._text = ""
        self._finish: object = None
        self._usage: CallTokens | None = None
        self._nano_aiu: float | None = None
        self._refusal: Native | None = None
        self._refused = anyio.Event()

    def _hear(self, event: Native) -> None:
        kind, data = event["type"], event["data"]
        if kind == "assistant.usage":
            self._count(data)
        elif kind == "assistant.message" and of_main_agent(event) and data.get("content"):
            self._text = str(data["content"])
        elif kind == "model.call_failure":
            self._refusal = data
            if _is_final(data.get("statusCode")):
                self._refused.set()
        self._watch.feed(event)

    def _count(self, data: Mapping[str, Any]) -> None:
        before = self._usage or CallTokens()
        self._usage = CallTokens(
            input_tokens=before.input_tokens + int(data.get("inputTokens") or 0),
            output_tokens=before.output_tokens + int(data.get("outputTokens") or 0),
        )
        self._finish = data.get("finishReason")
        billed = data.get("copilotUsage")
        amount = billed.get("totalNanoAiu") if isinstance(billed, Mapping) else None
        if amount is not None:
            self._nano_aiu = (self._nano_aiu or 0) + amount

    async def _send(self) -> None:
        assert self._session is not None
        schema = dict(self._request.tool.parameters) if self._as_json else None
        try:
            await self._session.send(well_formed(self._prompt), response_schema=schema)
        except Exception as error:
            raise await self._broken(error) from None
        await self._watch.wait()

    async def _end_when_refused(self) -> None:
        """Return once the endpoint said what asking again will not change; the runtime would ask again all the same."""
        await self._refused.wait()
        with contextlib.suppress(Exception), anyio.move_on_after(1):
            assert self._session is not None
            await self._session.abort()

    def _failure(self, data: Native) -> EndpointError:
        """Why the turn ended with an error. The runtime has already tried again what may pass."""
        refusal = self._refusal or {}
        status = refusal.get("statusCode", data.get("statusCode"))
        text = str(refusal.get("errorMessage") or data.get("message") or "the session ended with an error")
        if not isinstance(status, int) or isinstance(status, bool):
            return EndpointError(self._without_secrets(text))
        told = EndpointError.of_status(status, text, {}, self._access.secrets)
        return EndpointError(told.message, status=status, body=told.body)

    def _answer(self) -> JudgeAnswer:
        calls = tuple(self._calls)
        if self._as_json and self._text.strip():
            calls = (submitted_call(self._text),)
        missing = "it is empty" if self._as_json else f"it has no call of {self._request.tool.name}"
        cut = self._finish in ("length", "max_tokens", "max_output_tokens")
        cost = None if self._nano_aiu is None else Cost(**COST_UNIT, amount=self._nano_aiu)
        problem = "it was cut off at the limit of output tokens" if cut else missing
        return JudgeAnswer(calls=calls, problem=problem, usage=self._usage, cost=cost)

    def _without_secrets(self, text: str) -> str:
        for secret in sorted(self._access.secrets, key=len, reverse=True):
            text = text.replace(secret, "<redacted>")
        return " ".join(text.split())


def _is_final(status: object) -> bool:
    return isinstance(status, int) and status in _FINAL_STATUSES and status not in _PASSING_STATUSES
