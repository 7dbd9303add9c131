"""What executors ask about the network of their agents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from vally import (
    AgentNetwork,
    ExecutorError,
    ExecutorOptions,
    LocalProcessRunner,
    McpServer,
    ProviderConfig,
    ProviderSettings,
    agent_provider,
    network_refusal,
    refuse_remote_servers,
    refuse_unreachable_model,
)
from vally.run.late_runner import LateRunner
from vally.testing import executor_options

pytestmark = pytest.mark.anyio
SETTINGS = ProviderSettings(type="openai", base_url="http://127.0.0.1:9/v1/", api_key_env="A_KEY")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Behind(LocalProcessRunner):
    """A runner whose processes find every provider at an address of their own."""

    network: Literal["host", "model", "none"] = "model"

    async def reach_provider(self, provider: ProviderConfig, warn: Callable[[str], None]) -> ProviderConfig:
        warn(f"{provider.base_url} with {provider.api_key}")
        return ProviderConfig(type=provider.type, base_url="http://127.0.0.1:1/v1", api_key="stand-in")


class Alone(LocalProcessRunner):
    network: Literal["host", "model", "none"] = "none"


def given(directory: Path, kind: type[LocalProcessRunner], **fields: object) -> ExecutorOptions:
    return executor_options(directory, runner=kind("trial", {}), process_env={"A_KEY": "the key"}, **fields)


async def test_a_provider_of_this_machine_stays_as_it_is(tmp_path: Path) -> None:
    provider = await agent_provider(SETTINGS, given(tmp_path, LocalProcessRunner))
    assert provider is not None
    assert (provider.base_url, provider.api_key) == ("http://127.0.0.1:9/v1", "the key")


async def test_a_provider_of_a_confined_agent_is_that_of_its_runner(tmp_path: Path) -> None:
    warnings: list[str] = []
    provider = await agent_provider(SETTINGS, given(tmp_path, Behind, warn=warnings.append))
    assert provider is not None
    assert (provider.base_url, provider.api_key) == ("http://127.0.0.1:1/v1", "stand-in")
    assert warnings == ["http://127.0.0.1:9/v1 with the key"]


async def test_an_agent_without_network_reaches_no_provider(tmp_path: Path) -> None:
    with pytest.raises(ExecutorError, match=r"the network 'none'.*network=model") as caught:
        await agent_provider(SETTINGS, given(tmp_path, Alone))
    assert caught.value.code == "unsupported-option"


@pytest.mark.parametrize("network", ["model", "none"])
def test_an_agent_that_asks_its_maker_needs_this_network(network: AgentNetwork) -> None:
    with pytest.raises(ExecutorError, match=f"^agent x without 'provider' needs .* network '{network}'") as caught:
        refuse_unreachable_model(network, has_provider=False, agent="agent x")
    assert caught.value.code == "unsupported-option"


@pytest.mark.parametrize(
    ("network", "has_provider", "agent"),
    [("host", False, "agent x"), ("host", True, None), ("model", True, "agent x"), ("none", False, None)],
)
def test_a_model_that_can_be_reached(network: AgentNetwork, has_provider: bool, agent: str | None) -> None:
    refuse_unreachable_model(network, has_provider=has_provider, agent=agent)


@pytest.mark.parametrize("kind", [LocalProcessRunner, Behind, Alone])
async def test_nothing_is_refused_that_needs_no_network(kind: type[LocalProcessRunner], tmp_path: Path) -> None:
    servers = {"calc": McpServer(name="calc", type="stdio", command="calc")}
    refuse_remote_servers(servers, kind.network)
    assert await agent_provider(None, given(tmp_path, kind)) is None


async def test_a_variable_that_is_not_set(tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"api_key_env": "ANOTHER_KEY"})
    with pytest.raises(ExecutorError, match=r"provider\.apiKeyEnv: environment variable 'ANOTHER_KEY' is not set"):
        await agent_provider(settings, given(tmp_path, LocalProcessRunner))


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_servers_elsewhere(kind: Literal["http", "sse"]) -> None:
    servers = {"far": McpServer(name="far", type=kind, url="https://servers.example")}
    refuse_remote_servers(servers, "host")
    with pytest.raises(ExecutorError, match=f"MCP server 'far' of type '{kind}' needs the network of this machine"):
        refuse_remote_servers(servers, "model")


def test_a_refusal_says_what_to_do() -> None:
    error = network_refusal("A login needs", "none", "name an endpoint")
    assert str(error) == (
        "A login needs the network of this machine, and the backend gives the agent the network 'none'; "
        "name an endpoint, or allow it with --backend-args network=host"
    )


async def test_processes_of_graders_reach_what_this_machine_does() -> None:
    provider = SETTINGS.config()
    assert await LateRunner({}).reach_provider(provider, print) is provider
