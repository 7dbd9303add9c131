"""One trial: a session of an agent, its prompts, and how they end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import acp
import anyio

from vally import (
    AgentLimit,
    ExecutorError,
    ExecutorOptions,
    LocalProcessRunner,
    Stimulus,
    Trajectory,
    TrajectoryBuilder,
    TurnComplete,
    parse_duration,
)
from vally_executor_acp.agent import Agent, Params, lost, mapping
from vally_executor_acp.config import AcpConfig
from vally_executor_acp.failures import (
    described,
    infrastructure_error,
    needs_login,
    request_failure,
    status_in,
    wants_login,
)
from vally_executor_acp.permissions import cancelled, is_allowed, outcome
from vally_executor_acp.prompts import blocks
from vally_executor_acp.quirks import Quirks, quirks_of
from vally_executor_acp.reaching import check_reachable
from vally_executor_acp.servers import Servers
from vally_executor_acp.skills import offered_places
from vally_executor_acp.updates import Updates
from vally_executor_acp.usage import Tokens, read_model, read_tokens

EXECUTOR = "acp"
CANCEL_S = 5.0
TURN_DONE = "completed"

Acquire = Callable[[], Awaitable[Agent]]
Release = Callable[[Agent], Awaitable[None]]

_ENDS = {
    "end_turn": TURN_DONE,
    "max_tokens": "budget",
    "max_turn_requests": "budget",
    "refusal": "refused",
}


class Session:
    """Runs the prompts of one stimulus.

    `model` is what the agent was told to use, None when it was told nothing. `servers` are its MCP servers.
    """

    def __init__(self, config: AcpConfig, stimulus: Stimulus, options: ExecutorOptions, model: str | None) -> None:
        self._config = config
        self._stimulus = stimulus
        self._options = options
        self._model = model
        skills = offered_places(options.skills, config.skills_place, options.work_dir)
        self._builder = TrajectoryBuilder(stimulus, replace(options, skills=skills), executor=EXECUTOR)
        self._builder.metadata["skillsLoaded"] = sorted(skill.name for skill in options.skills)
        self.servers = Servers(
            options.mcp_servers,
            scratch=options.trial_dir,
            work_dir=options.work_dir,
            as_file=bool(config.known.mcp_words),
        )
        self._limit = AgentLimit(options)
        self._quirks = Quirks()
        self._updates = Updates(self._builder, self._quirks)
        self._stopping = False
        self._used: Tokens | None = None
        self._spent = 0.0
        self._agent: Agent | None = None
        self._id = ""

    async def run(self, acquire: Acquire, release: Release) -> Trajectory:
        """Run all turns with an agent; raises `ExecutorError` with the events so far."""
        try:
            return await self._with_agent(acquire)
        except ExecutorError as error:
            agent = self._agent
            if agent is not None and agent.stderr and "stderr" not in (error.details or {}):
                error.details = {**(error.details or {}), "stderr": self._options.redact(agent.stderr)}
            error.trajectory = self._builder.finish("error")
            raise
        finally:
            if self._agent is not None:
                self._agent.forget(self._id)
                with anyio.CancelScope(shield=True):
                    await release(self._agent)

    async def _with_agent(self, acquire: Acquire) -> Trajectory:
        async def get() -> None:
            self._agent = await acquire()

        if not await self._limit.run(get):
            return self._builder.finish_stopped()
        assert self._agent is not None
        return await self._run(self._agent)

    # What the agent tells; see `SessionListener`.

    def on_update(self, update: Params) -> None:
        """Record an update."""
        self._options.on_raw_event(update)
        self._updates.take(update)

    async def on_permission(self, params: Params) -> dict[str, Any]:
        """Answer by the policy."""
        if self._stopping:
            return cancelled()
        call = self._updates.ask(mapping(params.get("toolCall")))
        decide = partial(is_allowed, self._config.permissions, call.kind, call.title)
        allowed = await anyio.to_thread.run_sync(decide)
        call.denied = not allowed
        given = params.get("options")
        return outcome([mapping(item) for item in given] if isinstance(given, list) else [], allowed=allowed)

    async def _run(self, agent: Agent) -> Trajectory:
        if not await self._limit.run(partial(self._open, agent)):
            return self._builder.finish_stopped()
        turns = self._stimulus.turns
        for turn, prompt in enumerate(turns):
            if self._limit.reached:
                return self._builder.finish_stopped()
            end = await self._turn(agent, turn, prompt)
            if end is None:
                return self._builder.finish_stopped()
            if end != TURN_DONE:
                return self._builder.finish(end)
            await self._options.on_turn_complete(TurnComplete(turn, turn == len(turns) - 1))
        return self._builder.finish(TURN_DONE)

    async def _open(self, agent: Agent) -> None:
        self._check(agent)
        if isinstance(self._options.runner, LocalProcessRunner):  # other agents have another network
            await check_reachable(self._options.mcp_servers.values(), self._options.env)
        self._quirks = quirks_of(agent.name)
        self._updates = Updates(self._builder, self._quirks)
        with anyio.move_on_after(parse_duration(self._config.init_timeout) / 1000) as scope:
            try:
                told = await self.servers.watch.run(partial(agent.request, "session_new", self._new_session()))
                self._id = _session_id(told)
                agent.listen(self._id, self)
                await self._set_mode(agent, told)
            except acp.RequestError as error:
                if wants_login(error):
                    raise needs_login(error, agent.auth_methods) from error
                raise ExecutorError(
                    f"the agent opened no session: {described(error)}", code="agent-start-failed"
                ) from error
            except ConnectionError as error:
                raise await lost(agent, "agent-start-failed", self._options.redact) from error
        if scope.cancelled_caught:
            raise ExecutorError(
                f"the agent opened no session within {self._config.init_timeout}",
                code="agent-start-failed",
                retryable=True,
            )
        self._describe(agent)

    def _new_session(self) -> dict[str, Any]:
        work_dir = self._options.work_dir
        params: dict[str, Any] = {"cwd": str(work_dir), "mcpServers": self.servers.told}
        # With the user's own home the agent is to be as the user knows it.
        meta = self._config.known.session_meta(work_dir) if self._config.home == "private" else {}
        return {**params, "_meta": meta} if meta else params

    def _check(self, agent: Agent) -> None:
        for kind in sorted(self.servers.kinds - {"stdio"}):
            if not agent.can("mcpCapabilities", kind):
                raise ExecutorError(f"the agent does not support MCP servers by {kind}", code="unsupported-option")

    def _describe(self, agent: Agent) -> None:
        metadata = self._builder.metadata
        metadata["sessionID"] = self._id
        if self._config.profile is not None:
            metadata |= {"profile": self._config.profile, "gaps": list(self._config.known.gaps)}
        if agent.name:
            metadata["agentName"] = agent.name
        if agent.version:
            metadata["executorVersion"] = agent.version
        if self._options.mcp_servers:
            metadata["mcpServers"] = sorted(self._options.mcp_servers)

    async def _set_mode(self, agent: Agent, told: Params) -> None:
        modes = mapping(told.get("modes"))
        listed = modes.get("availableModes")
        known = [str(mapping(item).get("id")) for item in listed] if isinstance(listed, list) else []
        wanted = next((mode for mode in self._config.modes if mode in known), None)
        if wanted is None and self._config.mode is not None:
            there_are = f"; it has {', '.join(known)}" if known else ""
            raise ExecutorError(f"the agent has no mode '{self._config.mode}'{there_are}", code="unsupported-option")
        if wanted is None or wanted == modes.get("currentModeId"):
            return
        await agent.request("session_set_mode", {"sessionId": self._id, "modeId": wanted})

    async def _turn(self, agent: Agent, turn: int, prompt: str) -> str | None:
        """One prompt; returns an end reason, None when the agent's time is over."""
        attachments = [item for item in self._options.attachments if item.turn == turn]
        sent = await anyio.to_thread.run_sync(blocks, prompt, attachments, agent)
        self._builder.user_message(prompt, attachments=[item.name for item in attachments])
        self._updates.begin()
        response: Params = {}
        failure: tuple[str, int | None] | None = None
        try:
            response = await self._prompt(agent, sent, first=turn == 0)
        except acp.RequestError as error:
            failure = request_failure(error)
            self._updates.drop_text(failure[0])
        except ConnectionError as error:
            self._end_prompt({}, complete=False)
            raise await lost(agent, "agent-crashed", self._options.redact) from error
        except ExecutorError:
            self._end_prompt({}, complete=False)
            raise
        stopped = self._stopping
        self._end_prompt(response, complete=not stopped and failure is None)
        if stopped:
            return None
        if failure is None and self._updates.failure is not None:
            failure = self._updates.failure, status_in(self._updates.failure)
        if failure is not None:
            return self._failed_prompt(*failure)
        reason = response.get("stopReason")
        if reason == "cancelled":
            # Nobody here asked for it, or the prompt would count as stopped.
            return self._failed_prompt("the agent interrupted its turn", None, type="aborted")
        return _ENDS.get(str(reason), TURN_DONE)

    async def _prompt(self, agent: Agent, sent: list[dict[str, Any]], *, first: bool) -> Params:
        """Send a prompt and wait for its end; a stop cancels it, and its last updates are still heard."""
        response: Params = {}
        failure: Exception | None = None
        watch = self.servers.watch
        ask = partial(agent.request, "session_prompt", {"sessionId": self._id, "prompt": sent})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._stop_prompt, agent, tasks.cancel_scope)
            try:
                response = await watch.run(ask)
            except (acp.RequestError, ConnectionError, ExecutorError) as error:
                failure = error
            tasks.cancel_scope.cancel()
        if isinstance(failure, ExecutorError):
            raise failure
        if first and failure is None:
            await watch.check_up("before the time was over" if self._stopping else "before the agent was done")
        for line in await anyio.to_thread.run_sync(watch.ended):
            self._options.warn(line)
        if failure is not None and not self._stopping:
            raise failure
        return response

    async def _stop_prompt(self, agent: Agent, scope: anyio.CancelScope) -> None:
        await self._limit.wait()
        self._stopping = True
        await agent.notify("session_cancel", {"sessionId": self._id})
        await anyio.sleep(CANCEL_S)
        scope.cancel()

    def _end_prompt(self, response: Params, *, complete: bool) -> None:
        tokens = read_tokens(response)
        if tokens is not None and self._quirks.cumulative_usage:
            tokens, self._used = tokens.since(self._used), tokens
        model = self._model or read_model(response)
        self._updates.end(tokens, model=model, cost=self._cost() if tokens else None, complete=complete)

    def _cost(self) -> Mapping[str, object] | None:
        """What was spent since the last prompt; agents tell the sum of the session."""
        if self._updates.cost is None:
            return None
        amount, unit = self._updates.cost
        spent, self._spent = amount - self._spent, amount
        provider = self._config.profile or (self._agent.name if self._agent else "") or EXECUTOR
        return {"provider": provider, "unit": unit, "amount": max(0.0, spent)}

    def _failed_prompt(self, text: str, status: int | None, **facts: str) -> str:
        """An error of infrastructure, or one before the agent did anything, is the trial's; any other the agent's."""
        message = self._options.redact(text)
        error = infrastructure_error(message, status)
        self._builder.error(message, code=status, **facts)
        if error is None and self._builder.acted:
            return "error"
        raise error or ExecutorError(message or "the prompt failed", code="agent-protocol")


def _session_id(told: Params) -> str:
    found = told.get("sessionId")
    if not isinstance(found, str) or not found:
        raise ExecutorError("the agent opened no session: its answer has no sessionId", code="agent-protocol")
    return found
