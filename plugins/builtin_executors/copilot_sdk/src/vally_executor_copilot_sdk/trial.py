"""One trial: a session of its own in a runtime process, a turn per prompt."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from vally import AgentLimit, ExecutorError, ExecutorOptions, Stimulus, Trajectory, TurnComplete, first_result
from vally_executor_copilot_sdk.arguments import attach, session_arguments
from vally_executor_copilot_sdk.client import RuntimeClient
from vally_executor_copilot_sdk.clients import ClientChoice
from vally_executor_copilot_sdk.config import CopilotConfig
from vally_executor_copilot_sdk.facts import SessionFacts
from vally_executor_copilot_sdk.failures import (
    end_reason_of_answer,
    end_reason_of_error,
    infrastructure_error,
    refusal_reason,
)
from vally_executor_copilot_sdk.native import is_own, prompt_event, session_file, well_formed
from vally_executor_copilot_sdk.pool import ClientPool
from vally_executor_copilot_sdk.recording import SessionRecord
from vally_executor_copilot_sdk.waiting import TurnWatch

if TYPE_CHECKING:
    from copilot import CopilotSession

REPLY_LIMIT_S = 5.0
INTERRUPTED = "the agent interrupted its turn"
SESSION_VARIABLE = "COPILOT_AGENT_SESSION_ID"


@dataclass(frozen=True, slots=True)
class _Stopped:
    """The time of the agent is over."""


class Trial:
    """Runs once. `choice` says which process serves it."""

    def __init__(
        self,
        config: CopilotConfig,
        stimulus: Stimulus,
        options: ExecutorOptions,
        pool: ClientPool,
        choice: ClientChoice,
    ) -> None:
        self._config = config
        self._stimulus = stimulus
        self._options = options
        self._pool = pool
        self._choice = choice
        self._limit = AgentLimit(options)
        self._watch = TurnWatch()
        self._facts = SessionFacts(options.mcp_servers, options.skills, options.warn)
        self._record = SessionRecord(stimulus, options, (self._facts.feed, self._watch.feed))
        self._client: RuntimeClient | None = None
        self._session: CopilotSession | None = None
        self._end_reason = "completed"

    async def run(self) -> Trajectory:
        """Run all turns; raises `ExecutorError` with the events so far when the agent could not be run."""
        async with AsyncExitStack() as stack:
            # What the runtime keeps of a session is gone when the stack is left.
            try:
                trajectory = await self._run(stack)
            except ExecutorError as error:
                raise await self._told(error) from None
            await self._keep_log()
            return self._with_log(trajectory)

    async def _run(self, stack: AsyncExitStack) -> Trajectory:
        if not await self._limit.run(partial(self._open, stack)):
            return self._stopped()
        prompts, turn = list(self._stimulus.turns), 0
        while turn < len(prompts):
            if not await self._turn(prompts[turn], turn):
                return self._stopped() if self._limit.reached else self._finished(self._end_reason)
            in_time = turn < len(prompts) - 1 or await self._limit.run(partial(self._simulate, prompts))
            await self._options.on_turn_complete(TurnComplete(turn, turn == len(prompts) - 1))
            if not in_time:
                return self._stopped()
            turn += 1
        return self._finished(end_reason_of_answer(self._facts.finish_reason))

    async def _open(self, stack: AsyncExitStack) -> None:
        choice = self._choice
        lease = self._pool.lease(choice.key, choice.make, sessions=choice.sessions)
        client = self._client = await stack.enter_async_context(lease)
        await choice.check(client)
        self._options.runner.mark(SESSION_VARIABLE, self._options.trial_id)
        stack.push_async_callback(self._end_session, client)
        self._facts.begin()
        arguments = session_arguments(self._config, self._options, choice.access, client.settings.copilot_home)
        opened = await first_result(
            partial(self._create, client, arguments), client.wait_failed, self._facts.wait_mcp_failure
        )
        if isinstance(opened, ExecutorError):
            raise opened

    async def _create(self, client: RuntimeClient, arguments: Mapping[str, Any]) -> None:
        try:
            self._session = await client.create_session(
                **arguments, on_event=self._record.on_event, on_unreadable=self._record.on_unreadable
            )
        except Exception as error:
            raise await client.failure_behind(error) or _refusal(error) from None
        await self._facts.wait_ready()

    async def _turn(self, prompt: str, turn: int) -> bool:
        """Run one turn; whether another one may follow."""
        assert self._client is not None
        if self._limit.reached:
            return False
        attachments = await anyio.to_thread.run_sync(attach, self._options, turn)
        self._watch.begin()
        self._record.take(prompt_event(prompt, [item["displayName"] for item in attachments]))
        ended = await first_result(
            partial(self._send, self._client, prompt, attachments),
            self._client.wait_failed,
            self._facts.wait_mcp_failure,
            self._time_is_over,
        )
        if isinstance(ended, _Stopped):
            await self._abort()
            return False
        if isinstance(ended, ExecutorError):
            if ended.code == "mcp-server-failed":
                await self._abort()
            raise ended
        await self._complete(wait=True)
        return self._goes_on()

    async def _send(self, client: RuntimeClient, prompt: str, attachments: list[dict[str, str]]) -> None:
        assert self._session is not None
        try:
            await self._session.send(well_formed(prompt), attachments=attachments or None)  # type: ignore[arg-type]  # plain mappings
        except Exception as error:
            raise await client.failure_behind(error) or _refusal(error) from None
        await self._watch.wait()

    async def _time_is_over(self) -> _Stopped:
        await self._limit.wait()
        return _Stopped()

    def _goes_on(self) -> bool:
        if self._watch.how == "idle":
            return True
        if self._watch.how == "error":
            data = self._watch.error or {}
            acted = self._record.builder.acted
            error = infrastructure_error(data, transport=self._facts.transport_failed, acted=acted)
            if error is not None:
                raise error
            self._end_reason = end_reason_of_error(data)
            if self._end_reason == "error" and not acted:
                raise ExecutorError(str(data.get("message")), code="agent-protocol")
            return False
        # Nobody here asked for it, or it would have been noticed first.
        if not self._record.builder.acted:
            raise ExecutorError(INTERRUPTED, code="agent-protocol")
        self._record.builder.error(INTERRUPTED, type="aborted")
        self._end_reason = "error"
        return False

    async def _abort(self) -> None:
        assert self._session is not None
        with contextlib.suppress(Exception), anyio.move_on_after(REPLY_LIMIT_S):
            await self._session.abort()
        with anyio.move_on_after(REPLY_LIMIT_S):
            await self._watch.wait()
        await self._complete(wait=False)

    async def _complete(self, *, wait: bool) -> None:
        assert self._client is not None
        path = session_file(self._client.settings.copilot_home, self._options.trial_id)
        await self._record.complete(path, wait=wait)

    async def _simulate(self, prompts: list[str]) -> None:
        """Let a simulated user go on, when there is one."""
        user = self._options.simulated_user
        more = None if user is None else await user.next_message(self._record.builder.events)
        if more is not None:
            prompts.append(more)

    async def _end_session(self, client: RuntimeClient) -> None:
        with anyio.CancelScope(shield=True):
            await client.delete_session(self._options.trial_id, self._session)

    def _stopped(self) -> Trajectory:
        return self._finished("cancelled" if self._options.stop.reason == "cancelled" else "agent_timeout")

    def _finished(self, end_reason: str) -> Trajectory:
        facts, client = self._facts, self._client
        model = self._choice.access.model or facts.model
        told = {
            "sdkVersion": client.sdk_version if client is not None else None,
            "executorVersion": client.version if client is not None else None,
            "model": model,
            "otherSkills": facts.other_skills,
            "mcpServers": sorted(self._options.mcp_servers),
            "modelRetries": facts.model_retries,
        }
        metadata = self._record.builder.metadata
        metadata.update({key: value for key, value in told.items() if value})
        if self._session is not None:
            metadata["skillsLoaded"] = facts.skill_names
        if (warning := self._record.repair_warning()) is not None:
            self._options.warn(warning)
        return self._record.finish(end_reason)

    async def _told(self, error: ExecutorError) -> ExecutorError:
        """The same error for this trial alone, with what happened until then and without secrets."""
        redact = self._options.redact
        if self._client is not None and self._session is not None:
            await self._complete(wait=False)
            await self._keep_log()
        details = {
            key: redact(value) if isinstance(value, str) else value for key, value in (error.details or {}).items()
        }
        if self._record.builder.turn >= 0 and not any(event.type == "error" for event in self._record.builder.events):
            self._record.builder.error(redact(error.message), type=error.code)
        return ExecutorError(
            redact(error.message),
            code=error.code or "executor-exception",
            retryable=error.retryable,
            retry_after_ms=error.retry_after_ms,
            details=details or None,
            trajectory=self._with_log(self._finished("error")),
        )

    async def _keep_log(self) -> None:
        if self._client is None or self._options.session_log is None:
            return
        source = session_file(self._client.settings.copilot_home, self._options.trial_id)
        await anyio.to_thread.run_sync(_copy_log, source, self._options)

    def _with_log(self, trajectory: Trajectory) -> Trajectory:
        path = self._options.session_log
        if path is None or not path.is_file():
            return trajectory
        return trajectory.model_copy(update={"session_path": str(path)})


def _copy_log(source: Path, options: ExecutorOptions) -> None:
    path = options.session_log
    if path is None or not is_own(source):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with source.open(encoding="utf-8", errors="replace") as lines, path.open("w", encoding="utf-8") as log:
        for line in lines:
            log.write(options.redact(line))


def _refusal(error: Exception) -> ExecutorError:
    return ExecutorError(f"the Copilot runtime refused the session: {refusal_reason(error)}", code="executor-config")
