"""What an agent can have where a backend gives its processes no network of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vally.errors import ExecutorError, VallyError
from vally.run.providers import resolve_provider

if TYPE_CHECKING:
    from vally.model.evalspec import ProviderConfig
    from vally.model.provider_settings import ProviderSettings
    from vally.run.inputs import ExecutorOptions


async def agent_provider(
    settings: ProviderSettings | None, options: ExecutorOptions, *, agent: str | None = None
) -> ProviderConfig | None:
    """The endpoint that the agent's own processes are to ask, as they reach it, with what they are to use as its key.

    `agent` names, in messages, an agent that asks its maker when there are no settings. Raises `ExecutorError` when a
    variable is not set, and when the agent cannot reach its model where it runs.
    """
    if settings is None:
        if agent is not None and options.runner.network != "host":
            raise network_refusal(f"{agent} without 'provider' needs", options, "name a model endpoint with 'provider'")
        return None
    try:
        provider = resolve_provider(settings.config(), options.process_env)
    except VallyError as error:
        raise ExecutorError(f"provider.{error.where}: {error.message}", code="executor-config") from None
    return await options.runner.reach_provider(provider, options.warn)


def refuse_remote_servers(options: ExecutorOptions) -> None:
    """Raise `ExecutorError` for an MCP server elsewhere when the agent has no network to reach it by."""
    if options.runner.network == "host":
        return
    for name, server in options.mcp_servers.items():
        if server.type != "stdio":
            raise network_refusal(f"MCP server '{name}' of type '{server.type}' needs", options, "use a 'stdio' server")


def network_refusal(what: str, options: ExecutorOptions, instead: str) -> ExecutorError:
    """The refusal of `what`, such as `a login needs`, that only the network of this machine allows."""
    return ExecutorError(
        f"{what} the network of this machine, and the backend gives the agent the network "
        f"'{options.runner.network}'; {instead}, or allow it with --backend-args network=host",
        code="unsupported-option",
    )
