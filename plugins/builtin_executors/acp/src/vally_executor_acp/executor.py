"""Running agents by the Agent Client Protocol."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from vally import (
    AgentNetwork,
    Capabilities,
    ExecutorError,
    ExecutorOptions,
    McpServer,
    RunContext,
    Stimulus,
    Trajectory,
    agent_provider,
    canonical_json,
    check_offered_skills,
    known_servers,
    refuse_remote_servers,
    refuse_unreachable_model,
)
from vally_executor_acp.config import MODEL, AcpConfig
from vally_executor_acp.profiles import PROFILES, Wiring
from vally_executor_acp.skills import link_skills, stage_skills

if TYPE_CHECKING:
    from vally_executor_acp.pool import AgentPool
    from vally_executor_acp.session import Acquire, Release

_MODULES = "node_modules"
_HOMES = ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA")


class AcpExecutor:
    """Runs each trial in a session of an agent; see `AcpConfig`."""

    def __init__(self) -> None:
        self._pool: AgentPool | None = None
        self._process_env: Mapping[str, str] | None = None
        self._warned: set[str] = set()

    def configure(self, context: RunContext) -> None:
        """Look for programs where the run does."""
        self._process_env = context.process_env

    def capabilities_for(self, config: AcpConfig) -> Capabilities:
        """What an agent can be told; whether it takes attachments is known only when it runs."""
        return Capabilities(
            model=config.takes_model,
            multi_turn=True,
            turn_completion=True,
            mcp=True,
            skills=config.takes_skills,
            env=True,
            attachments=True,
            isolation=True,
        )

    def host_paths(self, config: AcpConfig) -> Sequence[Path]:
        """The directories that the program needs: where its name leads, and the packages it was installed with."""
        found = self._found(config)
        if found is None:
            return []
        parts = found.resolve().parts
        packages = Path(*parts[: parts.index(_MODULES) + 1]) if _MODULES in parts else found.resolve().parent
        return list(dict.fromkeys((found.parent, packages)))

    def check_network(self, config: AcpConfig, stimulus: Stimulus, network: AgentNetwork) -> None:
        """Raise `ExecutorError` for what needs more of the network than the agent has."""
        _check_network(config, known_servers(stimulus), network)

    def example_configs(self) -> Mapping[str, Mapping[str, object]]:
        """The agents that there are profiles for."""
        return {name: {"profile": name} for name in PROFILES}

    async def preflight(self, config: AcpConfig) -> str:
        """Prove that the program exists, and tell where; one below the workspace appears only with it."""
        program = _words(config)[0]
        found = await anyio.to_thread.run_sync(self._found, config)
        if found is not None:
            return str(found)
        if Path(program).name != program and not Path(program).is_absolute():
            return f"{program}, which is below the workspace"
        raise ExecutorError(f"the program '{program}' was not found on PATH", code="executor-unavailable")

    def _found(self, config: AcpConfig) -> Path | None:
        path = None if self._process_env is None else self._process_env.get("PATH")
        found = shutil.which(_words(config)[0], path=path)
        return None if found is None else Path(found)

    async def prepare(self, stimulus: Stimulus, options: ExecutorOptions) -> None:
        """Copy the offered skills to where the agent looks for them."""
        place = _config(options).skills_place
        if place is not None and options.skills:
            await anyio.to_thread.run_sync(stage_skills, options.skills, options.work_dir / place)

    async def execute(self, stimulus: Stimulus, options: ExecutorOptions) -> Trajectory:
        """Run every turn of the stimulus."""
        from vally_executor_acp.session import Session

        config = _config(options)
        self._warn(config, options)
        check_offered_skills(options.skills)
        _check_network(config, options.mcp_servers, options.runner.network)
        wiring = await _wiring(config, options)
        session = Session(config, stimulus, options, wiring.wire_model)
        file = session.servers.file
        argv = [*command(config, options), *((*config.known.mcp_words, f"@{file}") if file is not None else ())]
        acquire, release = await self._source(config, options, wiring, argv)
        return await session.run(acquire, release)

    async def _source(
        self, config: AcpConfig, options: ExecutorOptions, wiring: Wiring, argv: list[str]
    ) -> tuple[Acquire, Release]:
        """How the trial gets its agent, and gives it back: one of its own, or a place in one that serves several."""
        from vally_executor_acp.launch import end, start
        from vally_executor_acp.pool import AgentPool

        shared_runner, shared_dir = options.shared_runner, options.shared_dir
        shared = config.sessions_per_agent > 1
        # Assets are told by the environment, and some agents read their servers when they start.
        own = options.assets_dir is not None or (config.known.mcp_words and options.mcp_servers)
        if shared_runner is None or shared_dir is None or own or not shared:
            env = {**options.env, **own_environment(config, wiring)}
            if config.known.skills_by_home and config.home == "private" and config.skills_place is not None:
                link_skills(options.work_dir / config.skills_place, Path(env["HOME"]) / config.skills_place)
            return partial(start, config, options, options.runner, argv, options.work_dir, env), end
        home = shared_dir / "acp"
        home.mkdir(mode=0o700, exist_ok=True)
        env = {
            **shared_environment(config, options, home),
            **own_environment(config, replace(wiring, scratch=home, work_dir=None)),
        }
        self._pool = self._pool or AgentPool()
        start_shared = partial(start, config, options, shared_runner, argv, home, env)
        key = canonical_json({"argv": argv, "env": env})
        return partial(self._pool.acquire, key, config.sessions_per_agent, start_shared), self._pool.release

    async def shutdown(self) -> None:
        """End the agents that serve several trials; others end with their trial."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    def _warn(self, config: AcpConfig, options: ExecutorOptions) -> None:
        told = [
            "home: host: results depend on the settings of agents in your own home directory"
            if config.home == "host"
            else None,
            config.provider.notice if config.provider is not None else None,
        ]
        for text in told:
            if text is not None and text not in self._warned:
                self._warned.add(text)
                options.log.warning("%s", text)


def command(config: AcpConfig, options: ExecutorOptions) -> list[str]:
    """The command line of the agent; raises `ExecutorError` when it needs a model and there is none."""
    model = _model(config, options)
    words = _words(config)
    if model is None and (config.known.needs_model or any(MODEL in word for word in words)):
        raise ExecutorError(
            "the agent needs a model: set defaults.model, --model or provider.model", code="executor-config"
        )
    extra = (*config.known.model_words, model) if model is not None and config.known.model_words else ()
    return [word.replace(MODEL, model or "") for word in words] + list(extra)


def _words(config: AcpConfig) -> list[str]:
    return list(config.command or config.known.command)


def _model(config: AcpConfig, options: ExecutorOptions) -> str | None:
    return (config.provider.model if config.provider is not None else None) or options.model


def _check_network(config: AcpConfig, servers: Mapping[str, McpServer], network: AgentNetwork) -> None:
    agent = f"profile '{config.profile}'" if config.profile is not None and config.command is None else None
    refuse_unreachable_model(network, has_provider=config.provider is not None, agent=agent)
    refuse_remote_servers(servers, network)


async def _wiring(config: AcpConfig, options: ExecutorOptions) -> Wiring:
    provider = await agent_provider(config.provider, options)
    if provider is not None and _model(config, options) is None:
        raise ExecutorError(
            "an endpoint of your own needs a model: set defaults.model, --model or provider.model",
            code="executor-config",
        )
    return Wiring(
        work_dir=options.work_dir,
        alone=config.home == "private",
        model=options.model,
        provider=provider,
        settings=config.provider,
        scratch=options.trial_dir,
    )


def _config(options: ExecutorOptions) -> AcpConfig:
    if not isinstance(options.executor_config, AcpConfig):
        raise ExecutorError("executor 'acp' needs a config with 'profile' or 'command'", code="executor-config")
    return options.executor_config


def own_environment(config: AcpConfig, wiring: Wiring) -> dict[str, str]:
    """What the profile and the config add to the agent's environment."""
    own = {name: text.replace(MODEL, wiring.wire_model or "") for name, text in config.env.items()}
    return {**config.known.environment(wiring), **own}


def shared_environment(config: AcpConfig, options: ExecutorOptions, home: Path) -> dict[str, str]:
    """The environment of an agent that outlives the trial, in which nothing is the trial's own."""
    homes = {name: str(home) for name in _HOMES}
    if config.home == "host":
        homes = {name: options.env[name] for name in _HOMES if name in options.env}
    return {**options.base_env, **homes, "TMPDIR": str(home)}
