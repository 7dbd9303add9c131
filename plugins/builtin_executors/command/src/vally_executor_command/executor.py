"""Running an agent by its command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio

from vally import Capabilities, ExecutorError, ExecutorOptions, Process, Stimulus, Trajectory
from vally_executor_command.config import CommandConfig
from vally_executor_command.profiles import PROFILES
from vally_executor_command.programs import find_program, installation, installed_version
from vally_executor_command.session import Session
from vally_executor_command.staging import copy_skills


class CommandExecutor:
    """Runs one process per turn; see `CommandConfig`."""

    def __init__(self) -> None:
        self._running: set[Process] = set()
        self._warned = False

    def capabilities_for(self, config: CommandConfig) -> Capabilities:
        """What the templates of a config can tell an agent."""
        several = config.continue_command is not None
        return Capabilities(
            env=True,
            isolation=True,
            session_log=True,
            skills=config.skills_dir is not None,
            mcp=config.uses("mcp_config") or (config.agent is not None and config.agent.mcp_by_file),
            multi_turn=several,
            turn_completion=several,
            reasoning_effort=config.uses("reasoning_effort"),
        )

    def host_paths(self, config: CommandConfig) -> Sequence[Path]:
        """The directories of the program, where its name leads and where the file really lies."""
        found = find_program(config)
        return [] if found is None else installation(found)

    def example_configs(self) -> Mapping[str, Mapping[str, object]]:
        """The agents that there are profiles for."""
        return {name: {"profile": name} for name in PROFILES}

    async def preflight(self, config: CommandConfig) -> None:
        """Prove that the program exists; one below the workspace appears only with it."""
        program = str(config.command[0])
        in_workspace = Path(program).name != program and not Path(program).is_absolute()
        if not in_workspace and "{" not in program and find_program(config) is None:
            hint = f"; {config.agent.hint}" if config.agent else ""
            raise ExecutorError(f"the program '{program}' was not found on PATH{hint}", code="executor-unavailable")

    async def prepare(self, stimulus: Stimulus, options: ExecutorOptions) -> None:
        """Copy the offered skills to where the agent looks for them."""
        config = _config(options)
        if config.skills_dir is not None:
            await anyio.to_thread.run_sync(copy_skills, options.skills, options.work_dir / config.skills_dir)

    async def execute(self, stimulus: Stimulus, options: ExecutorOptions) -> Trajectory:
        """Run every turn of the stimulus."""
        config = _config(options)
        if config.home == "host" and not self._warned:
            self._warned = True
            options.log.warning("home: host: results depend on the settings of agents in your own home directory")
        version = await anyio.to_thread.run_sync(_version, config, options)
        return await Session(config, stimulus, options, self._running, version).run()

    async def shutdown(self) -> None:
        """End the agents that still run."""
        for process in list(self._running):
            await process.terminate()


def _config(options: ExecutorOptions) -> CommandConfig:
    if not isinstance(options.executor_config, CommandConfig):
        raise ExecutorError("executor 'command' needs a config with 'command'", code="executor-config")
    return options.executor_config


def _version(config: CommandConfig, options: ExecutorOptions) -> str | None:
    program = find_program(config, options.env) if config.agent else None
    return installed_version(program, config.agent.package) if config.agent and program else None
