"""Everything that comes before the agent: directories, environment, set-up commands, and what the executor gets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio

from vally import (
    Environment,
    ExecutorOptions,
    ProcessRunner,
    Skill,
    StopSignal,
    TrialItem,
    TrialOptions,
    TurnComplete,
    agent_environment,
    simulated_user,
    wrap_servers,
)
from vally_backend_local.directories import TrialDirectories
from vally_backend_local.failures import SetupError
from vally_backend_local.mcp_servers import resolve_servers
from vally_backend_local.setup_commands import command_environment, run_commands
from vally_backend_local.shared import RunResources
from vally_backend_local.work import Work, run_work
from vally_backend_local.workspaces import Filled, StagePlan


@dataclass(frozen=True)
class Runners:
    """Who starts the processes of a trial's parts; backends that confine them may have one for each part."""

    setup: ProcessRunner
    agent: ProcessRunner
    grade: ProcessRunner

    def distinct(self) -> list[ProcessRunner]:
        """Every runner once."""
        return list({id(runner): runner for runner in (self.setup, self.agent, self.grade)}.values())

    async def end_setup(self) -> None:
        """End what set-up commands left behind where they had a runner of their own: the agent could not reach it."""
        if self.setup is not self.agent:
            await self.setup.kill_all()

    async def open_agent(self) -> None:
        """Let the runner of the agent get ready, when it has to. Raises what its `open` raises."""
        method = getattr(self.agent, "open", None)
        if method is not None:
            await method()

    def remarks(self) -> list[str]:
        """What the runner of the agent has to say of its processes, such as that they ran into a limit."""
        method = getattr(self.agent, "remarks", None)
        return [] if method is None else list(method())

    async def kill_all(self) -> None:
        """End every process of the trial, even when the caller is cancelled."""
        if self.used:
            with anyio.CancelScope(shield=True):
                for runner in self.distinct():
                    await runner.kill_all()

    @property
    def used(self) -> bool:
        """Whether there may be processes; runners that do not tell are taken to have some."""
        return any(getattr(runner, "used", True) for runner in self.distinct())

    def close(self) -> None:
        """Say that nothing is left to watch over."""
        for runner in self.distinct():
            close = getattr(runner, "close", None)
            if close is not None:
                close()


@dataclass(frozen=True)
class Place:
    """A trial's identity, where it happens, and what its environment is after merging."""

    trial_id: str
    item: TrialItem
    directories: TrialDirectories
    environment: Environment

    @property
    def assets(self) -> Path | None:
        """The asset directory when something was staged there."""
        staged = any(entry.dest_root == "assets" for entry in self.environment.files)
        return self.directories.assets if staged else None

    @property
    def stages_grading_assets(self) -> bool:
        """Whether the grading environment puts something into the asset directory."""
        return any(entry.dest_root == "assets" for entry in self.item.stimulus.grading_environment.files)

    def command_environment(self, process_env: Mapping[str, str], spec_env: Mapping[str, str]) -> dict[str, str]:
        """Environment of set-up commands and graders."""
        return command_environment(
            process_env,
            spec_env,
            workspace=self.directories.workspace,
            trial_id=self.trial_id,
            assets=self.directories.assets if self.directories.assets.is_dir() else None,
            seed=self.item.seed,
        )


def keeps_home(options: TrialOptions) -> bool:
    """Whether the config of the executor asks for the caller's home directory."""
    return getattr(options.executor_config, "home", None) == "host"


def agent_environments(
    place: Place, options: TrialOptions, resources: RunResources
) -> tuple[dict[str, str], dict[str, str]]:
    """The environment of the agent's processes, and the same without its trial-specific part."""
    config = options.executor_config
    pass_env = tuple(getattr(config, "pass_env", None) or ())
    return agent_environment(
        resources.agent_variables(options.process_env, pass_env),
        pass_env=pass_env,
        home_dir=None if keeps_home(options) else place.directories.home,
        tmp_dir=place.directories.tmp,
        workspace=place.directories.workspace,
        spec_env=place.environment.env,
        assets_dir=place.assets,
        trial_id=place.trial_id,
    )


async def stage(place: Place, resources: RunResources) -> Filled:
    """Fill the workspace with repository, files and skills. Raises SetupError."""
    item, environment, directories = place.item, place.environment, place.directories
    if not (environment.git or environment.files or item.skills):
        return Filled(key="empty" if not item.workspace.in_place else None)
    plan = StagePlan(
        base=item.spec_dir,
        git=environment.git,
        files=environment.files,
        skills=item.skills,
        cacheable=not environment.commands and not item.workspace.in_place,
    )

    def fill(work: Work) -> Filled:
        return resources.filler.fill(plan, directories.workspace, directories.assets, work)

    return await run_work(fill, limiter=resources.staging)


async def run_setup(place: Place, options: TrialOptions, runner: ProcessRunner) -> None:
    """Run the commands of the environment; variables of the agent's part are not for them. Raises SetupError."""
    if place.environment.commands:
        env = place.command_environment(options.process_env, place.item.stimulus.environment.env)
        await run_commands(place.environment, runner, workspace=place.directories.workspace, env=env)


async def stage_grading(place: Place, options: TrialOptions, resources: RunResources, runner: ProcessRunner) -> None:
    """Add the grading environment to a workspace in which the agent has finished. Raises SetupError."""
    environment, directories = place.item.stimulus.grading_environment, place.directories
    if environment.files:
        plan = StagePlan(base=place.item.spec_dir, files=environment.files, cacheable=False)

        def fill(work: Work) -> Filled:
            return resources.filler.fill(plan, directories.workspace, directories.assets, work)

        await run_work(fill, limiter=resources.staging)
    if environment.commands:
        env = place.command_environment(options.process_env, environment.env)
        await run_commands(environment, runner, workspace=directories.workspace, env=env)


def executor_options(
    place: Place,
    options: TrialOptions,
    *,
    skills: tuple[Skill, ...],
    env: Mapping[str, str],
    base_env: Mapping[str, str],
    runner: ProcessRunner,
    shared_runner: ProcessRunner | None,
    shared_dir: Path,
    stop: StopSignal,
    on_turn_complete: Callable[[TurnComplete], Awaitable[None]],
    warn: Callable[[str], None],
) -> ExecutorOptions:
    """What the executor gets; the deadline is set when it starts."""
    item, directories = place.item, place.directories
    constraints = item.stimulus.constraints
    soft_limit = constraints.max_agent_duration_ms
    return ExecutorOptions(
        item_id=item.item_id,
        trial_id=place.trial_id,
        work_dir=directories.workspace,
        trial_dir=directories.trial,
        spec_dir=item.spec_dir,
        assets_dir=place.assets,
        skills=skills,
        mcp_servers=wrap_servers(
            resolve_servers(
                place.environment.mcp_servers,
                spec_dir=item.spec_dir,
                work_dir=item.work_dir,
                workspace=directories.workspace,
            ),
            item.stimulus,
            directories.trial,
            warn,
        ),
        simulated_user=simulated_user(item.stimulus, options.judge, item.seed),
        env=env,
        base_env=base_env,
        process_env=options.process_env,
        model=item.model,
        reasoning_effort=item.reasoning_effort,
        seed=item.seed,
        timeout_ms=item.timeout_ms,
        deadline=float("inf"),
        max_agent_duration_ms=item.max_agent_duration_ms if soft_limit is None else soft_limit,
        max_turns=constraints.max_turns,
        max_tokens=constraints.max_tokens,
        executor_config=options.executor_config,
        attachments=item.stimulus.attachments,
        runner=runner,
        shared_runner=shared_runner,
        shared_dir=None if shared_runner is None else shared_dir,
        stop=stop,
        session_log=options.session_log,
        redact=options.redactor.text,
        log=options.log,
        on_turn_complete=on_turn_complete,
        on_event=options.on_event,
        warn=warn,
    )


def refuse_in_place_repository(place: Place) -> None:
    """A repository needs an empty workspace, which the user's own directory is not meant to be."""
    if place.item.workspace.in_place and place.environment.git:
        raise SetupError("an environment with 'git' cannot run in place", code="workspace-not-empty")
