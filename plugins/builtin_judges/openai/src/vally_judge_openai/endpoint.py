"""The endpoint: a client of the library that sends nothing but what the provider says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vally import ProviderConfig, own_headers_client, posted_json, provider_headers, provider_secrets

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Body = Mapping[str, Any]


class Endpoint:
    """One endpoint. Making it imports the library, which takes a second."""

    def __init__(self, provider: ProviderConfig) -> None:
        self._client = _client(provider)
        self._secrets = provider_secrets(provider)

    async def complete(self, body: Body) -> Body:
        """Make a request for a chat completion; raises `EndpointError`."""
        return await self._answer("/chat/completions", body)

    async def respond(self, body: Body) -> Body:
        """Make a request for a response; raises `EndpointError`."""
        return await self._answer("/responses", body)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _answer(self, path: str, body: Body) -> Body:
        import openai

        return await posted_json(openai, self._client, path, body, self._secrets)


def _client(provider: ProviderConfig) -> AsyncOpenAI:
    import openai

    http = own_headers_client(openai, provider_headers(provider))
    # Whoever asks does the retries.
    common: dict[str, Any] = {"http_client": http, "max_retries": 0, "timeout": None, "api_key": "unused"}
    base_url = (provider.base_url or "").rstrip("/")
    if provider.type != "azure":
        return openai.AsyncOpenAI(base_url=base_url, **common)
    if provider.api_version is None:
        return openai.AsyncOpenAI(base_url=f"{_azure_host(base_url)}/openai/v1", **common)
    return openai.AsyncAzureOpenAI(azure_endpoint=_azure_host(base_url), api_version=provider.api_version, **common)


def _azure_host(base_url: str) -> str:
    """The endpoint of a resource, of which users also know longer forms."""
    for ending in ("/v1", "/openai"):
        base_url = base_url.removesuffix(ending)
    return base_url
