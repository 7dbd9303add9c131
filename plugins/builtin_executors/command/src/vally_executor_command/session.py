"""One trial: a process per turn, its output read by the dialect's parser."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial

import anyio

from vally import (
    Completed,
    ExecutorError,
    ExecutorOptions,
    Process,
    ProcessStartError,
    Stimulus,
    Trajectory,
    TrajectoryBuilder,
    TurnComplete,
    communicate,
)
from vally_executor_command.config import CommandConfig
from vally_executor_command.dialects import DIALECTS, ParsedTurn
from vally_executor_command.outcome import Failure, failure_of, start_error, tail
from vally_executor_command.staging import mcp_document, write_private
from vally_executor_command.templates import EmptyPlaceholder, fill, render, used

LONGEST_ARGUMENT = 100 * 1024


class Session:
    """The turns of one trial. `running` holds the processes that the executor must end when it is shut down."""

    def __init__(
        self, config: CommandConfig, stimulus: Stimulus, options: ExecutorOptions, running: set[Process]
    ) -> None:
        self._config = config
        self._stimulus = stimulus
        self._options = options
        self._running = running
        self._builder = TrajectoryBuilder(stimulus, options, executor="command")
        self._session_id = options.trial_id
        self._soft_deadline = _soft_deadline(options)

    async def run(self) -> Trajectory:
        """Run all turns; raises `ExecutorError` with the events so far when the agent could not be run."""
        turns = self._stimulus.turns
        if len(turns) > 1 and self._config.continue_command is None:
            raise ExecutorError("more than one turn needs 'continueCommand'", code="unsupported-option")
        for turn, prompt in enumerate(turns):
            if self._options.stop.reason is not None:
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
        done = await self._process(argv, env, prompt.encode("utf-8", "replace") if by_stdin else b"")
        self._log_output(done)
        if done.stdout_truncated or done.stderr_truncated:
            raise self._error(self._overflow(done))
        stopped = done.timed_out
        in_order = not stopped and done.returncode in self._config.success_exit_codes
        parsed = DIALECTS[self._config.dialect](done.stdout.decode("utf-8", "replace"), in_order)
        self._take(parsed)
        if stopped:
            return self._builder.finish_stopped()
        failure = failure_of(done, parsed, self._options.redact(tail(done.stderr)), self._config)
        return None if failure is None else self._failed(failure)

    def _command(self, turn: int, prompt: str) -> tuple[list[str], dict[str, str]]:
        template = self._config.template(turn)
        values = self._values(turn, prompt, used(template) | used(list(self._config.env.values())))
        if "prompt" in used(template) and len(prompt.encode("utf-8", "replace")) > LONGEST_ARGUMENT:
            raise ExecutorError(
                "the prompt is longer than 100 KiB, too long for an argument; use 'prompt: stdin' without '{prompt}'",
                code="executor-config",
            )
        try:
            own = {name: fill(text, values) for name, text in self._config.env.items()}
            return render(template, values), {**self._options.env, **own}
        except EmptyPlaceholder as error:
            raise ExecutorError(str(error), code="executor-config") from None

    def _values(self, turn: int, prompt: str, wanted: frozenset[str]) -> dict[str, str]:
        options, scratch = self._options, self._options.trial_dir
        values = {
            "prompt": prompt,
            "workspace": str(options.work_dir),
            "trial_dir": str(scratch),
            "model": options.model or "",
            "reasoning_effort": options.reasoning_effort or "",
            "session_id": self._session_id,
            "usage_file": str(scratch / f"usage-{turn}.json"),
            "turn": str(turn),
        }
        if "prompt_file" in wanted:
            values["prompt_file"] = str(write_private(scratch / f"prompt-{turn}.txt", prompt))
        if "mcp_config" in wanted and options.mcp_servers:
            values["mcp_config"] = str(write_private(scratch / "mcp.json", mcp_document(options.mcp_servers)))
        return values

    async def _process(self, argv: list[str], env: dict[str, str], stdin: bytes) -> Completed:
        limit = self._config.max_output_bytes
        too_much = anyio.Event()
        received = 0

        def count(chunk: bytes) -> None:
            nonlocal received
            received += len(chunk)
            if received > limit:
                too_much.set()

        process = await self._start(argv, env)
        until = partial(self._first_of, too_much.wait)
        try:
            return await communicate(process, stdin=stdin, max_bytes=limit, until=until, on_output=count)
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
            raise self._error(start_error(error)) from None
        self._running.add(process)
        return process

    async def _first_of(self, too_much: Callable[[], Awaitable[object]]) -> None:
        """Return at the stop signal, at the agent's own time limit, or when it has written too much."""
        async with anyio.create_task_group() as tasks:

            async def end_after(wait: Callable[[], Awaitable[object]]) -> None:
                await wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(end_after, self._options.stop.wait)
            tasks.start_soon(end_after, too_much)
            if self._soft_deadline is not None:
                tasks.start_soon(end_after, partial(anyio.sleep, max(0.0, self._soft_deadline - time.monotonic())))

    def _take(self, parsed: ParsedTurn) -> None:
        for event in parsed.events:
            self._builder.record(event)
        if parsed.session_id is not None:
            self._session_id = self._builder.metadata["sessionID"] = parsed.session_id

    def _failed(self, failure: Failure) -> Trajectory:
        """An error of infrastructure, or one before the agent did anything, is the trial's; any other the agent's."""
        if failure.code is None and self._builder.acted:
            self._builder.error(failure.message)
            return self._builder.finish("error")
        raise self._error(
            ExecutorError(
                failure.message,
                code=failure.code or "agent-start-failed",
                retryable=failure.retryable or failure.code is None,
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


def _soft_deadline(options: ExecutorOptions) -> float | None:
    if options.max_agent_duration_ms is None:
        return None
    return time.monotonic() + options.max_agent_duration_ms / 1000
