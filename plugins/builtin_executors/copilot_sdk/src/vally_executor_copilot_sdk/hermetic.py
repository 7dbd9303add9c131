"""Trials whose backend gives the runtime no network of this machine: what they cannot have, and what they are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from vally import AgentNetwork, ExecutorOptions, McpServer, network_refusal, refuse_remote_servers
from vally_executor_copilot_sdk.config import CopilotConfig
from vally_executor_copilot_sdk.environment import host_copilot_home
from vally_executor_copilot_sdk.provider import ModelAccess

PLACEHOLDER_HOST = "model.invalid"
"""A name that no resolver knows, by RFC 6761."""
PLACEHOLDER_KEY = "vally-placeholder-key"
_KEYS = ("api_key", "bearer_token")


def is_hermetic(options: ExecutorOptions) -> bool:
    """Whether model calls must leave by way of this process."""
    return options.runner.network != "host"


def check_hermetic(
    config: CopilotConfig, process_env: Mapping[str, str], servers: Mapping[str, McpServer], network: AgentNetwork
) -> None:
    """Raise `ExecutorError` for what needs a network of the runtime's own, where it has none."""
    if network == "host":
        return
    if config.provider is None:
        raise network_refusal("GitHub authentication needs", network, "name a model endpoint with 'provider'")
    if host_copilot_home(process_env) is not None:
        raise network_refusal("the user's own Copilot home needs", network, "unset EVALUATE_USE_HOST_COPILOT_HOME")
    refuse_remote_servers(servers, network)


def placeholder_access(access: ModelAccess) -> ModelAccess:
    """The same access without key, headers and host; the path stays, because requests are told apart by it."""
    assert access.provider is not None
    path = urlsplit(access.provider["base_url"]).path
    told = {name: value for name, value in access.provider.items() if name not in (*_KEYS, "headers")}
    keys = {name: PLACEHOLDER_KEY for name in _KEYS if name in access.provider}
    return replace(access, provider={**told, **keys, "base_url": f"https://{PLACEHOLDER_HOST}{path}"})


def credential(provider: Mapping[str, Any]) -> str | None:
    """What stands where the runtime has the placeholder; None without a key."""
    return next((provider[name] for name in _KEYS if name in provider), None)
