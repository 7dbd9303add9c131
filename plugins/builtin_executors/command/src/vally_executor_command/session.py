"""One trial: a process per turn, its output read by the dialect's parser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from vally import (
    AgentLimit,
    Completed,
    ExecutorError,
    ExecutorOptions,
    McpWatch,
    Process,
    ProcessStartError,
    Stimulus,
    Trajectory,
    TrajectoryBuilder,
    TurnComplete,
    communicate,
    first_result,
)
from vally_executor_command.arrivals import Arrivals
from vally_executor_command.config import CommandConfig
from vally_executor_command.dialects import DIALECTS, ParsedTurn, TurnOutput
from vally_executor_command.outcome import Failure, Offered, failure_of, refusal_of, start_error, tail
from vally_executor_command.profiles import Additions, Trial
from vally_executor_command.staging import mcp_document, read_text, write_private
from vally_executor_command.templates import EmptyPlaceholder, fill, render, used
from vally_executor_command.wiring import add_profile, facts_of, known_skills, reached_provider, with_arguments

LONGEST_ARGUMENT = 100 * 1024
_SIGNS_OF_LIFE = frozenset({"assistant_message", "reasoning", "tool_call", "error"})


class Session:
    """The turns of one trial.

    `running` holds the processes that the executor must end when it is shut down. `version` is that of the program.
    """

    def __init__(
        self,
        config: CommandConfig,
        stimulus: Stimulus,
        options: ExecutorOptions,
        running: set[Process],
        version: str | None = None,
    ) -> None:
        self._config = config
        self._stimulus = stimulus
        self._servers = McpWatch(options.trial_dir)
        watched = {
            name: self._servers.put_before(server, options.work_dir) for name, server in options.mcp_servers.items()
        }
        self._options = options = replace(options, mcp_servers=watched)
        self._lost_server: ExecutorError | None = None
        self._running = running
        with_copies = replace(options, skills=known_skills(config, options))
        self._builder = TrajectoryBuilder(stimulus, with_copies, executor="command", version=version)
        self._builder.metadata["skillsLoaded"] = sorted({skill.name for skill in options.skills})
        self._builder.metadata.update(facts_of(config.agent))
        self._offered = Offered(
            servers=tuple(options.mcp_servers), skills=tuple(skill.name for skill in options.skills)
        )
        self._version = version
        self._session_id = options.trial_id
        self._totals: Mapping[str, Any] = {}
        self._limit = AgentLimit(options)
        self._trial = Trial(work_dir=options.work_dir, trial_dir=options.trial_dir, home=None, env=options.env)
        self._additions = Additions()

    async def run(self) -> Trajectory:
        """Run all turns; raises `ExecutorError` with the events so far when the agent could not be run."""
        turns = self._stimulus.turns
        if len(turns) > 1 and self._config.continue_command is None:
            raise ExecutorError("more than one turn needs 'continueCommand'", code="unsupported-option")
        provider = await reached_provider(self._config, self._options)
        self._trial, self._additions = await anyio.to_thread.run_sync(
            add_profile, self._config, self._options, self._version, provider
        )
        for turn, prompt in enumerate(turns):
            if self._limit.reached:
                return self._finished(self._builder.finish_stopped())
            ended = await self._turn(turn, prompt)
            if ended is not None:
                return self._finished(ended)
            await self._options.on_turn_complete(TurnComplete(turn, turn == len(turns) - 1))
        return self._finished(self._builder.finish("completed"))

    async def _turn(self, turn: int, prompt: str) -> Trajectory | None:
        """Run one turn; returns the trajectory when it is the last for a reason of its own."""
        argv, env = self._command(turn, prompt)
        self._builder.user_message(prompt)
        by_stdin = self._config.prompt_by(turn) == "stdin"
        arrivals = Arrivals(self._config.max_output_bytes)
        done = await self._process(argv, env, prompt.encode("utf-8", "replace") if by_stdin else b"", arrivals)
        self._log_output(done)
        if done.stdout_truncated or done.stderr_truncated:
            raise self._error(self._overflow(done))
        # Long outputs take a while, during which other trials should go on.
        parsed = await anyio.to_thread.run_sync(self._parse, turn, done, arrivals)
        self._take(parsed)
        await self._check_servers(turn, done)
        stderr = self._options.redact(tail(done.stderr))
        failure = (
            refusal_of(parsed, stderr, self._config.dialect)
            if done.timed_out
            else failure_of(done, parsed, stderr, self._config, self._offered)
        )
        if failure is not None:
            return self._failed(failure, parsed)
        if done.timed_out:
            return self._builder.finish_stopped()
        return None if parsed.end_reason is None else self._builder.finish(parsed.end_reason)

    async def _check_servers(self, turn: int, done: Completed) -> None:
        """Raise `ExecutorError` when a server has not come up; tell of those that failed later."""
        try:
            if self._lost_server is not None:
                raise self._lost_server
            if turn == 0:
                await self._servers.check_up(
                    "before the time was over" if done.timed_out else "before the agent was done"
                )
        except ExecutorError as error:
            raise self._error(error) from None
        for line in await anyio.to_thread.run_sync(partial(self._servers.ended, by_now=False)):
            self._options.warn(line)

    async def _wait_server(self) -> None:
        self._lost_server = await self._servers.wait_failed()

    def _parse(self, turn: int, done: Completed, arrivals: Arrivals) -> ParsedTurn:
        in_order = not done.timed_out and done.returncode in self._config.success_exit_codes
        return DIALECTS[self._config.dialect](
            TurnOutput(
                text=done.stdout.decode("utf-8", "replace"),
                complete=in_order,
                times=tuple(arrivals.times),
                usage=read_text(self._usage_file(turn)),
                before=self._totals,
            )
        )

    def _command(self, turn: int, prompt: str) -> tuple[list[str], dict[str, str]]:
        template = self._config.template(turn)
        values = self._values(turn, prompt, used(template) | used(list(self._config.env.values())))
        if (
            values["prompt"]
            and "prompt" in used(template)
            and len(prompt.encode("utf-8", "replace")) > LONGEST_ARGUMENT
        ):
            instead = "'prompt: stdin'" if self._config.agent else "'prompt: stdin' without '{prompt}'"
            raise ExecutorError(
                f"the prompt is longer than 100 KiB, too long for an argument; use {instead}", code="executor-config"
            )
        try:
            own = {name: fill(text, values) for name, text in self._config.env.items()}
            argv = with_arguments(render(template, values), self._additions.arguments)
            return argv, {**self._options.env, **self._additions.env, **own}
        except EmptyPlaceholder as error:
            raise ExecutorError(str(error), code="executor-config") from None

    def _values(self, turn: int, prompt: str, wanted: frozenset[str]) -> dict[str, str]:
        options, scratch, profile = self._options, self._options.trial_dir, self._config.agent
        model = options.model if profile is None else profile.model_argument(self._trial)
        # The groups of profiles that hold the prompt are dropped when it comes another way.
        by_stdin = profile is not None and self._config.prompt == "stdin"
        values = {
            "prompt": "" if by_stdin else prompt,
            "workspace": str(options.work_dir),
            "trial_dir": str(scratch),
            "model": model or "",
            "reasoning_effort": options.reasoning_effort or "",
            "session_id": self._session_id,
            "usage_file": str(self._usage_file(turn)),
            "turn": str(turn),
        }
        if "prompt_file" in wanted:
            values["prompt_file"] = str(write_private(scratch / f"prompt-{turn}.txt", prompt))
        if "mcp_config" in wanted and options.mcp_servers:
            servers = options.mcp_servers
            told = servers if profile is None else {name: profile.mcp_server(item) for name, item in servers.items()}
            values["mcp_config"] = str(write_private(scratch / "mcp.json", mcp_document(told)))
        return values

    def _usage_file(self, turn: int) -> Path:
        return self._options.trial_dir / f"usage-{turn}.json"

    async def _process(self, argv: list[str], env: dict[str, str], stdin: bytes, arrivals: Arrivals) -> Completed:
        limit = self._config.max_output_bytes
        process = await self._start(argv, env)
        until = partial(self._first_of, arrivals.too_much.wait)
        try:
            return await communicate(process, stdin=stdin, max_bytes=limit, until=until, on_output=arrivals.take)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await process.terminate()
            raise
        finally:
            self._running.discard(process)

    async def _start(self, argv: list[str], env: dict[str, str]) -> Process:
        try:
            process = await self._options.runner.start(argv, cwd=self._options.work_dir, env=env)
        except ProcessStartError as error:
            profile = self._config.agent
            raise self._error(start_error(error, profile.hint if profile else None)) from None
        self._running.add(process)
        return process

    async def _first_of(self, too_much: Callable[[], Awaitable[object]]) -> None:
        """Return when the agent's time is over, it has written too much, or an MCP server does not come up."""
        await first_result(self._limit.wait, too_much, self._wait_server)

    def _take(self, parsed: ParsedTurn) -> None:
        for event in parsed.events:
            if event.type == "token_usage" and "model" not in event.data:
                event.data["model"] = self._trial.wire_model or self._builder.metadata["model"]
            self._builder.record(event)
        self._totals = parsed.totals
        metadata = self._builder.metadata
        metadata.update(parsed.metadata)
        if parsed.skills is not None:
            own = self._builtin_skills(parsed)
            metadata["builtinSkills"] = sorted(own)
            metadata["otherSkills"] = sorted(set(parsed.skills) - own - set(metadata["skillsLoaded"]))
        if parsed.session_id is not None:
            self._session_id = metadata["sessionID"] = parsed.session_id

    def _builtin_skills(self, parsed: ParsedTurn) -> set[str]:
        """Skills that belong to the agent itself."""
        profile, loaded = self._config.agent, set(parsed.skills or ()) - set(self._offered.skills)
        known = {name for name in loaded if profile is not None and profile.has_builtin_skill(name, self._trial)}
        return known | (loaded & set(parsed.builtin_skills))

    def _failed(self, failure: Failure, parsed: ParsedTurn) -> Trajectory:
        """An error of infrastructure, or one before the agent did anything, is the trial's; any other the agent's."""
        if failure.code is None and self._builder.acted:
            if not any(event.type == "error" for event in parsed.events):
                self._builder.error(failure.message)
            return self._builder.finish("error")
        started = parsed.session_id is not None or any(event.type in _SIGNS_OF_LIFE for event in parsed.events)
        raise self._error(
            ExecutorError(
                failure.message,
                code=failure.code or ("agent-protocol" if started else "agent-start-failed"),
                retryable=failure.retryable or (failure.code is None and not started),
                retry_after_ms=failure.retry_after_ms,
                details=failure.details,
            )
        )

    def _overflow(self, done: Completed) -> ExecutorError:
        limit, where = self._config.max_output_bytes, "stdout" if done.stdout_truncated else "stderr"
        return ExecutorError(
            f"the agent wrote more than {limit} bytes to {where}; raise 'maxOutputBytes' if that is right",
            code="agent-protocol",
            details={"line": self._options.redact(done.stdout[:200].decode("utf-8", "replace"))},
        )

    def _error(self, error: ExecutorError) -> ExecutorError:
        error.trajectory = self._finished(self._builder.finish("error"))
        return error

    def _log_output(self, done: Completed) -> None:
        path = self._options.session_log
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8", newline="") as log:
                log.write(self._options.redact(done.stdout.decode("utf-8", "replace")))

    def _finished(self, trajectory: Trajectory) -> Trajectory:
        path = self._options.session_log
        if path is None or not path.exists():
            return trajectory
        return trajectory.model_copy(update={"session_path": str(path)})
