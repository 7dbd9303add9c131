"""The judge as graders on a worker see it: every question goes to the driver.

So keys, limits, cache and accounting stay where they are for all other backends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import fields
from itertools import count
from typing import Any

import anyio.to_thread

from vally import JudgeError, JudgeReply, JudgeRequest
from vally_backend_ray.messages import JudgeCall, JudgeFacts
from vally_backend_ray.outbox import Outbox

NOT_SENT = ("check", "evidence_dir", "evidence_files")


class RemoteJudge:
    """See `JudgeClient`; one for each attempt."""

    def __init__(self, attempt: str, facts: JudgeFacts, outbox: Outbox) -> None:
        self._attempt = attempt
        self._facts = facts
        self._outbox = outbox
        self._numbers = count(1)
        self._open: dict[str, tuple[JudgeRequest, asyncio.Future[JudgeReply]]] = {}

    @property
    def supports_files(self) -> bool:
        """Whether the judge can read evidence files."""
        return self._facts.supports_files

    @property
    def result_metadata(self) -> Mapping[str, object]:
        """What the judge adds to the metadata of results."""
        return self._facts.metadata

    def model_for(self, configured: str | None) -> str:
        """The model of an entry: its own, else that of the run."""
        return configured or self._facts.model

    def effort_for(self, configured: str | None) -> str | None:
        """The reasoning effort of an entry: its own, else that of the run."""
        return configured or self._facts.effort

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """Ask the driver; raises `JudgeError`."""
        call = str(next(self._numbers))
        question = await anyio.to_thread.run_sync(_question, call, request)
        answer: asyncio.Future[JudgeReply] = asyncio.get_running_loop().create_future()
        self._open[call] = (request, answer)
        self._outbox.put(("judge", self._attempt, question), urgent=True)
        try:
            return await answer
        except asyncio.CancelledError:
            self._outbox.put(("judge-cancel", self._attempt, call), urgent=True)
            raise
        finally:
            del self._open[call]

    def answer(self, call: str, reply: JudgeReply | None, failure: Mapping[str, Any] | None) -> None:
        """Hand over what the driver says; nobody may wait for it any more."""
        _, future = self._open.get(call, (None, None))
        if future is None or future.done():
            return
        if reply is not None:
            future.set_result(reply)
        else:
            future.set_exception(JudgeError(**(failure or {"message": "no answer", "kind": "transport"})))

    def check(self, call: str, arguments: Mapping[str, object]) -> str | None:
        """What is wrong with the arguments of an answer, for the judge that asks; None for nothing."""
        request, _ = self._open.get(call, (None, None))
        return None if request is None else request.check(arguments)


def _question(call: str, request: JudgeRequest) -> JudgeCall:
    sent = {field.name: getattr(request, field.name) for field in fields(request) if field.name not in NOT_SENT}
    directory = request.evidence_dir
    if directory is None:
        return JudgeCall(call=call, request=sent)
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return JudgeCall(
        call=call,
        request=sent,
        evidence_dir=str(directory),
        evidence=tuple((path.relative_to(directory).as_posix(), path.read_bytes()) for path in files),
        evidence_files=tuple(path.relative_to(directory).as_posix() for path in request.evidence_files),
    )
