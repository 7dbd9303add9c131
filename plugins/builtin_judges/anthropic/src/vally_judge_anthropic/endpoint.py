"""The endpoint: a client of the library that sends nothing but what the provider says."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vally import ProviderConfig, own_headers_client, posted_json, provider_headers, provider_secrets

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

Body = Mapping[str, Any]
API_VERSION = "2023-06-01"


class Endpoint:
    """One endpoint. Making it imports the library, which takes a second."""

    def __init__(self, provider: ProviderConfig) -> None:
        self._client = _client(provider)
        self._secrets = provider_secrets(provider)

    async def message(self, body: Body) -> Body:
        """Make a request for a message; raises `EndpointError`."""
        import anthropic

        return await posted_json(anthropic, self._client, "/v1/messages", body, self._secrets)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()


def _client(provider: ProviderConfig) -> AsyncAnthropic:
    import anthropic

    own = {"anthropic-version": API_VERSION, **provider_headers(provider)}
    # Whoever asks does the retries.
    return anthropic.AsyncAnthropic(
        base_url=base_url(provider),
        api_key="unused",
        http_client=own_headers_client(anthropic, own),
        max_retries=0,
        timeout=None,
    )


def base_url(provider: ProviderConfig) -> str:
    """The base URL as the library wants it; a final `/v1`, which the library adds itself, is removed with a warning."""
    url = (provider.base_url or "").rstrip("/")
    if url.endswith("/v1"):
        url = url.removesuffix("/v1")
        logging.getLogger("vally.judge").warning("judge_provider.baseUrl: '/v1' at its end is ignored; write '%s'", url)
    return url
