"""Running one stimulus as a library: no backend, no run directory, no grades."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.to_thread

from vally.errors import UsageError
from vally.model.evalspec import DEFAULT_TIMEOUT_MS
from vally.run.agent import run_agent
from vally.run.calling import invoke
from vally.run.inputs import ExecutorOptions, StopSignal

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.model.evalspec import McpServer, Stimulus
    from vally.model.trajectory import Event, Trajectory
    from vally.records import Executor
    from vally.run.inputs import Skill

Cleanup = Callable[[], None]
AsyncCleanup = Callable[[], Awaitable[None]]
SHUTDOWN_S = 30.0


def _ignore(_: Any) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalOptions:
    """Settings of one run of a stimulus.

    `executor_config` is a mapping as in a spec. `skills` and `mcp_servers` must be ready to use: nothing is staged. The
    agent gets `process_env` (default: the environment of this process) by the allow-list that all trials have, and
    `env` on top. `host` finds the executor when it is given by name (default: what is installed).
    """

    model: str | None = None
    reasoning_effort: str | None = None
    seed: int | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    max_agent_duration_ms: int | None = None
    executor_config: Mapping[str, Any] = field(default_factory=dict)
    skills: tuple[Skill, ...] = ()
    mcp_servers: Mapping[str, McpServer] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    process_env: Mapping[str, str] | None = None
    spec_dir: Path | None = None
    session_log: Path | None = None
    host: PluginHost | None = None
    stop: StopSignal = field(default_factory=StopSignal)
    on_event: Callable[[Event], None] = _ignore

    @classmethod
    def of(cls, options: EvalOptions | Mapping[str, Any] | None) -> EvalOptions:
        """Make them from a mapping with these names; raises `UsageError` for another name."""
        if isinstance(options, EvalOptions):
            return options
        given = dict(options or {})
        known = [item.name for item in fields(cls)]
        for name in given:
            if name not in known:
                from vally.text.suggest import did_you_mean

                hint = did_you_mean(name, known) or f"options: {', '.join(known)}"
                raise UsageError(f"unknown option '{name}'", hints=[hint])
        return cls(**given)


def run_eval(
    stimulus: Stimulus,
    *,
    executor: str | Executor,
    work_dir: Path | str,
    options: EvalOptions | Mapping[str, Any] | None = None,
) -> tuple[Trajectory, Cleanup]:
    """Let an executor work on a stimulus in a prepared directory; returns what it did and how to clean up after it.

    `executor` is the name of an installed one, or an object. Call `cleanup()` once the trajectory and the directory
    were looked at: it ends what the agent left running and removes its private files, never `work_dir`. Raises
    `ExecutorError` or `TrialSkipped`, after cleaning up, and `PluginError` for a name nobody has. To be called
    outside an event loop; see `arun_eval`.
    """
    with ExitStack() as stack:
        # One loop serves execution and clean-up, because what an executor opens belongs to a loop.
        portal = stack.enter_context(anyio.from_thread.start_blocking_portal())
        call = partial(arun_eval, stimulus, executor=executor, work_dir=work_dir, options=options)
        trajectory, clean_up = portal.call(call)
        kept = stack.pop_all()

    def cleanup() -> None:
        with kept:
            portal.call(clean_up)

    return trajectory, _once(cleanup)


def _once(function: Cleanup) -> Cleanup:
    done: list[bool] = []

    def call() -> None:
        if not done:
            done.append(True)
            function()

    return call


async def arun_eval(
    stimulus: Stimulus,
    *,
    executor: str | Executor,
    work_dir: Path | str,
    options: EvalOptions | Mapping[str, Any] | None = None,
) -> tuple[Trajectory, AsyncCleanup]:
    """`run_eval` inside an event loop; its clean-up is awaited there too."""
    single = await _Single.prepare(stimulus, executor, Path(work_dir), EvalOptions.of(options))
    try:
        trajectory = await single.run()
    except BaseException:
        with anyio.CancelScope(shield=True):
            await single.cleanup()
        raise
    return trajectory, single.cleanup


class _Single:
    """One stimulus, its executor, and the private directory of its trial."""

    def __init__(
        self, stimulus: Stimulus, executor: Any, options: ExecutorOptions, *, blocking: bool, owned: bool
    ) -> None:
        self._stimulus = stimulus
        self._executor = executor
        self._options = options
        self._blocking = blocking
        self._owned = owned
        self._cleaned = False

    @classmethod
    async def prepare(cls, stimulus: Stimulus, executor: Any, work_dir: Path, settings: EvalOptions) -> _Single:
        if not work_dir.is_dir():
            raise UsageError(f"{work_dir} is not a directory", where="work_dir")
        instance, config, blocking = executor, settings.executor_config, True
        if isinstance(executor, str):
            from vally.host import PluginHost

            host = settings.host or PluginHost()
            record = host.require("executor", executor)
            config = host.parse_config(record, settings.executor_config)
            instance, blocking = host.create(record), record.blocking
        single = cls(
            stimulus,
            instance,
            _executor_options(stimulus, work_dir.resolve(), settings, config),
            blocking=blocking,
            owned=isinstance(executor, str),
        )
        try:
            method = getattr(instance, "prepare", None)
            if method is not None:
                await invoke(method, stimulus, single._options, blocking=blocking)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await single.cleanup()
            raise
        return single

    async def run(self) -> Trajectory:
        return await run_agent(self._executor, self._stimulus, self._options, blocking=self._blocking)

    async def cleanup(self) -> None:
        """End processes, let the executor clean up, and remove the private directory; a second call does nothing."""
        if self._cleaned:
            return
        self._cleaned = True
        try:
            await self._options.runner.kill_all()
            await self._tell("cleanup", self._options.trial_id, preserve_workspace=True)
            if self._owned:
                await self._tell("shutdown")
        finally:
            await anyio.to_thread.run_sync(partial(shutil.rmtree, self._options.trial_dir, ignore_errors=True))

    async def _tell(self, name: str, *args: Any, **kwargs: Any) -> None:
        method = getattr(self._executor, name, None)
        if method is not None:
            with anyio.move_on_after(SHUTDOWN_S):
                await invoke(method, *args, blocking=self._blocking, **kwargs)


def _executor_options(stimulus: Stimulus, work_dir: Path, settings: EvalOptions, config: Any) -> ExecutorOptions:
    from vally.processes import LocalProcessRunner
    from vally.run.environment import agent_environment

    # As a library there is no command line that could hand the environment in, and agents need at least a PATH.
    environ = dict(os.environ if settings.process_env is None else settings.process_env)
    trial_dir = Path(tempfile.mkdtemp(prefix="vally-eval-")).resolve()
    for name in ("home", "tmp"):
        (trial_dir / name).mkdir()
    trial_id = str(uuid.uuid4())
    env, base_env = agent_environment(
        environ,
        pass_env=getattr(config, "pass_env", None) or (),
        home_dir=None if getattr(config, "home", None) == "host" else trial_dir / "home",
        tmp_dir=trial_dir / "tmp",
        workspace=work_dir,
        spec_env={**stimulus.environment.env, **settings.env},
        assets_dir=None,
        trial_id=trial_id,
    )
    return ExecutorOptions(
        item_id=f"{stimulus.name}::trial-0",
        trial_id=trial_id,
        work_dir=work_dir,
        trial_dir=trial_dir,
        spec_dir=settings.spec_dir or work_dir,
        skills=settings.skills,
        mcp_servers=settings.mcp_servers,
        env=env,
        base_env=base_env,
        process_env=environ,
        model=settings.model,
        reasoning_effort=settings.reasoning_effort,
        seed=settings.seed,
        timeout_ms=settings.timeout_ms,
        deadline=time.monotonic() + settings.timeout_ms / 1000,
        max_agent_duration_ms=settings.max_agent_duration_ms,
        max_turns=stimulus.constraints.max_turns,
        max_tokens=stimulus.constraints.max_tokens,
        executor_config=config,
        attachments=stimulus.attachments,
        runner=LocalProcessRunner(trial_id, env, cwd=work_dir, owned_dirs=[trial_dir], removable_dirs=[trial_dir]),
        stop=settings.stop,
        session_log=settings.session_log,
        on_event=settings.on_event,
    )
