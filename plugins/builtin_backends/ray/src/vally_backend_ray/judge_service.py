"""Questions of graders on workers, put to the judge client that the run has for their trial."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio.to_thread

from vally import JudgeClient, JudgeError, JudgeReply, JudgeRequest
from vally_backend_ray.link import Link
from vally_backend_ray.messages import JudgeCall, JudgeFacts
from vally_backend_ray.mirror import checked_name
from vally_backend_ray.pickling import packed

CHECK_S = 30.0


def judge_facts(judge: JudgeClient | None) -> JudgeFacts | None:
    """What graders elsewhere must know of a judge client."""
    if judge is None:
        return None
    return JudgeFacts(
        supports_files=judge.supports_files,
        metadata=dict(getattr(judge, "result_metadata", None) or {}),
        model=judge.model_for(None),
        effort=judge.effort_for(None),
    )


class JudgeService:
    """Asks the judge of one attempt; all calls end with it."""

    def __init__(self, attempt: str, judge: JudgeClient, link: Link) -> None:
        self._attempt = attempt
        self._judge = judge
        self._link = link
        self._calls: dict[str, asyncio.Task[None]] = {}

    def ask(self, question: JudgeCall) -> None:
        """Begin a call; its answer goes to the worker."""
        task = asyncio.create_task(self._answered(question))
        self._calls[question.call] = task
        task.add_done_callback(lambda _: self._calls.pop(question.call, None))

    def cancel(self, call: str) -> None:
        """Give a call up that nobody waits for."""
        if call in self._calls:
            self._calls[call].cancel()

    def cancel_all(self) -> None:
        """Give up the calls of a worker that is gone."""
        for task in self._calls.values():
            task.cancel()

    async def close(self) -> None:
        """Give all calls up and wait for their ends."""
        tasks = list(self._calls.values())
        self.cancel_all()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answered(self, question: JudgeCall) -> None:
        reply: JudgeReply | None = None
        failure: dict[str, Any] | None = None
        try:
            reply = await self._asked(question)
        except JudgeError as error:
            failure = {"message": error.message, "kind": error.kind, "usage": error.usage, "cost": error.cost}
        except Exception as error:
            failure = {"message": f"{type(error).__name__}: {error}", "kind": "transport"}
        self._link.tell("answer", self._attempt, question.call, packed(reply), failure)

    async def _asked(self, question: JudgeCall) -> JudgeReply:
        request = JudgeRequest(**question.request, check=self._check(question.call))
        if question.evidence_dir is None:
            return await self._judge.judge(request)
        with tempfile.TemporaryDirectory(prefix="vally-evidence-", ignore_cleanup_errors=True) as made:
            directory = Path(made).resolve()
            await anyio.to_thread.run_sync(_write, question, directory)
            return await self._judge.judge(_with_evidence(request, question, directory))

    def _check(self, call: str) -> Callable[[Mapping[str, object]], str | None]:
        def check(arguments: Mapping[str, object]) -> str | None:
            try:
                found = self._link.call_blocking("check", self._attempt, call, dict(arguments), timeout=CHECK_S)
            except Exception as error:
                raise JudgeError(f"the worker could not check the answer: {error}", kind="transport") from error
            problem: str | None = found
            return problem

        return check


def _write(question: JudgeCall, directory: Path) -> None:
    for name, content in question.evidence:
        path = directory / checked_name(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _with_evidence(request: JudgeRequest, question: JudgeCall, directory: Path) -> JudgeRequest:
    assert question.evidence_dir is not None
    return replace(
        request,
        evidence_dir=directory,
        evidence_files=tuple(directory / checked_name(name) for name in question.evidence_files),
        system_message=request.system_message.replace(question.evidence_dir, str(directory)),
        user_message=request.user_message.replace(question.evidence_dir, str(directory)),
    )
