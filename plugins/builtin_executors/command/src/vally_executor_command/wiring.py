"""From a config and a trial to what the agent's profile is told and what it adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from vally import (
    AgentNetwork,
    ExecutorError,
    ExecutorOptions,
    McpServer,
    ProviderConfig,
    Skill,
    agent_provider,
    refuse_remote_servers,
    refuse_unreachable_model,
    segment,
)
from vally_executor_command.config import CommandConfig
from vally_executor_command.profiles import Additions, Profile, Trial


async def reached_provider(config: CommandConfig, options: ExecutorOptions) -> ProviderConfig | None:
    """The provider as the agent reaches it. Raises `ExecutorError` when it lacks the network that it needs."""
    check_network(config, options.mcp_servers, options.runner.network)
    return await agent_provider(config.provider, options)


def check_network(config: CommandConfig, servers: Mapping[str, McpServer], network: AgentNetwork) -> None:
    """Raise `ExecutorError` for what needs more of the network than the agent has."""
    profile = config.agent
    own = profile is not None and config.command[0] == profile.command[0]
    agent = f"profile '{config.profile}'" if own else None
    refuse_unreachable_model(network, has_provider=config.provider is not None, agent=agent)
    refuse_remote_servers(servers, network)


def add_profile(
    config: CommandConfig, options: ExecutorOptions, version: str | None, provider: ProviderConfig | None
) -> tuple[Trial, Additions]:
    """Let the profile of a config prepare a trial; nothing without a profile. Raises `ExecutorError`; blocks."""
    trial = Trial(
        work_dir=options.work_dir,
        trial_dir=options.trial_dir,
        home=_private_home(config, options.env),
        env={**options.env, **config.env},
        model=options.model,
        provider=provider,
        limits=config.provider,
        servers=options.mcp_servers,
        host_env=options.process_env,
        version=version,
    )
    profile = config.agent
    if profile is None:
        return trial, Additions()
    if trial.wire_model is None and (profile.needs_model or trial.provider is not None):
        why = "" if profile.needs_model else " when it has a provider"
        raise ExecutorError(
            f"profile '{profile.name}' needs a model{why}: set 'defaults.model', '--model' or 'provider.model'",
            code="executor-config",
        )
    return trial, profile.add(trial)


def with_arguments(argv: list[str], arguments: tuple[str, ...]) -> list[str]:
    """Put arguments in front of a `--`, after which nothing is an option, else to the end."""
    place = argv.index("--") if "--" in argv else len(argv)
    return [*argv[:place], *arguments, *argv[place:]]


def known_skills(config: CommandConfig, options: ExecutorOptions) -> tuple[Skill, ...]:
    """The offered skills, once more for each copy that the agent is given, so that reading a copy is noticed too."""
    if config.skills_dir is None:
        return options.skills
    target = options.work_dir / config.skills_dir
    copies = (replace(skill, path=target / segment(skill.name) / skill.path.name) for skill in options.skills)
    return (*options.skills, *copies)


def facts_of(profile: Profile | None) -> dict[str, object]:
    """What a trajectory says about the profile it was made with."""
    return {} if profile is None else {"profile": profile.name, "gaps": list(profile.gaps)}


def _private_home(config: CommandConfig, env: Mapping[str, str]) -> Path | None:
    home = env.get("HOME")
    return None if config.home == "host" or not home else Path(home)
