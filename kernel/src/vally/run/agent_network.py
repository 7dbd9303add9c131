"""What an agent can have where a backend gives its processes no network of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from vally.errors import ExecutorError, VallyError
from vally.run.providers import resolve_provider

if TYPE_CHECKING:
    from vally.model.evalspec import McpServer, ProviderConfig, Stimulus
    from vally.model.provider_settings import ProviderSettings
    from vally.run.inputs import ExecutorOptions

AgentNetwork = Literal["host", "model", "none"]
"""What processes of an agent reach: what this machine does, its model only, or nothing."""


async def agent_provider(settings: ProviderSettings | None, options: ExecutorOptions) -> ProviderConfig | None:
    """The endpoint that the agent's own processes are to ask, as they reach it, with what they are to use as its key.

    Raises `ExecutorError` when a variable is not set, and when the agent cannot reach its model where it runs.
    """
    if settings is None:
        return None
    refuse_unreachable_model(options.runner.network, has_provider=True, agent=None)
    try:
        provider = resolve_provider(settings.config(), options.process_env)
    except VallyError as error:
        raise ExecutorError(f"provider.{error.where}: {error.message}", code="executor-config") from None
    return await options.runner.reach_provider(provider, options.warn)


def refuse_unreachable_model(network: AgentNetwork, *, has_provider: bool, agent: str | None) -> None:
    """Raise `ExecutorError` when an agent whose own processes ask its model cannot reach it.

    `agent` names one that asks its maker when it has no provider.
    """
    if not has_provider and agent is not None and network != "host":
        raise network_refusal(f"{agent} without 'provider' needs", network, "name a model endpoint with 'provider'")
    if has_provider and network == "none":
        raise ExecutorError(
            f"the agent asks its model by itself, and the backend gives it the network '{network}'; "
            "let it reach its model with --backend-args network=model",
            code="unsupported-option",
        )


def refuse_remote_servers(servers: Mapping[str, McpServer], network: AgentNetwork) -> None:
    """Raise `ExecutorError` for an MCP server elsewhere when the agent has no network to reach it by."""
    if network == "host":
        return
    for name, server in servers.items():
        if server.type != "stdio":
            raise network_refusal(f"MCP server '{name}' of type '{server.type}' needs", network, "use a 'stdio' server")


def known_servers(stimulus: Stimulus) -> Mapping[str, McpServer]:
    """The MCP servers of a stimulus as far as they are known before its trial: simulated tools change them."""
    return {} if stimulus.simulation else stimulus.merged_environment.mcp_servers


def network_refusal(what: str, network: AgentNetwork, instead: str) -> ExecutorError:
    """The refusal of `what`, such as `a login needs`, that only the network of this machine allows."""
    return ExecutorError(
        f"{what} the network of this machine, and the backend gives the agent the network "
        f"'{network}'; {instead}, or allow it with --backend-args network=host",
        code="unsupported-option",
    )
