"""Running an agent by its command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio

from vally import (
    AgentNetwork,
    Capabilities,
    ExecutorError,
    ExecutorOptions,
    Process,
    RunContext,
    Stimulus,
    Trajectory,
    known_servers,
)
from vally_executor_command.config import CommandConfig
from vally_executor_command.profiles import PROFILES
from vally_executor_command.programs import find_program, installation, installed_version
from vally_executor_command.session import Session
from vally_executor_command.staging import copy_skills
from vally_executor_command.wiring import check_network


class CommandExecutor:
    """Runs one process per turn; see `CommandConfig`."""

    def __init__(self) -> None:
        self._running: set[Process] = set()
        self._warned: set[str] = set()
        self._process_env: Mapping[str, str] | None = None

    def configure(self, context: RunContext) -> None:
        """Look for programs where the run does."""
        self._process_env = context.process_env

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
        found = find_program(config, self._process_env)
        return [] if found is None else installation(found)

    def check_network(self, config: CommandConfig, stimulus: Stimulus, network: AgentNetwork) -> None:
        """Raise `ExecutorError` for what needs more of the network than the agent has."""
        check_network(config, known_servers(stimulus), network)

    def example_configs(self) -> Mapping[str, Mapping[str, object]]:
        """The agents that there are profiles for."""
        return {name: {"profile": name} for name in PROFILES}

    async def preflight(self, config: CommandConfig) -> str:
        """Prove that the program exists, and tell where; one below the workspace appears only with it."""
        program = str(config.command[0])
        found = await anyio.to_thread.run_sync(find_program, config, self._process_env)
        if found is not None:
            version = installed_version(found, config.agent.package) if config.agent else None
            return f"{found}, version {version}" if version else str(found)
        if "{" in program or (Path(program).name != program and not Path(program).is_absolute()):
            return f"{program}, which is below the workspace"
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
        if config.home == "host":
            self._warn(options, "home: host: results depend on the settings of agents in your own home directory")
        if config.provider is not None and config.provider.notice is not None:
            self._warn(options, config.provider.notice)
        version = await anyio.to_thread.run_sync(_version, config, options)
        return await Session(config, stimulus, options, self._running, version).run()

    def _warn(self, options: ExecutorOptions, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            options.log.warning(text)

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
