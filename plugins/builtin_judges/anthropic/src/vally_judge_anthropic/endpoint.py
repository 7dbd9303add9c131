"""The endpoint: a client of the library that sends nothing but what the provider says."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vally import EndpointError, ProviderConfig, outgoing_headers, provider_headers, provider_secrets

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

        try:
            answer = await self._client.post("/v1/messages", body=body, cast_to=object)
        except anthropic.APIStatusError as error:
            response = error.response
            raise EndpointError.of_status(error.status_code, response.text, response.headers, self._secrets) from error
        except anthropic.APIConnectionError as error:
            raise EndpointError.of_connection(error, self._secrets) from error
        except (anthropic.APIError, ValueError, RecursionError) as error:
            raise EndpointError("the endpoint's answer is not JSON") from error
        if not isinstance(answer, dict):
            raise EndpointError("the endpoint's answer is not a JSON object")
        return answer

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()


def _client(provider: ProviderConfig) -> AsyncAnthropic:
    import anthropic

    own = {"anthropic-version": API_VERSION, **provider_headers(provider)}

    async def send_own_headers_only(request: Any) -> None:
        headers = outgoing_headers(request.headers, own)
        for name in list(request.headers):
            if name not in headers:
                del request.headers[name]
        request.headers.update(headers)

    # Redirects are not followed, because the headers of this endpoint are meant for no other. The time limit is that
    # of the question, and whoever asks does the retries.
    http = anthropic.DefaultAsyncHttpxClient(
        event_hooks={"request": [send_own_headers_only]}, follow_redirects=False, timeout=None
    )
    return anthropic.AsyncAnthropic(
        base_url=base_url(provider), api_key="unused", http_client=http, max_retries=0, timeout=None
    )


def base_url(provider: ProviderConfig) -> str:
    """The base URL as the library wants it; a final `/v1`, which the library adds itself, is removed with a warning."""
    url = (provider.base_url or "").rstrip("/")
    if url.endswith("/v1"):
        url = url.removesuffix("/v1")
        logging.getLogger("vally.judge").warning("judge_provider.baseUrl: '/v1' at its end is ignored; write '%s'", url)
    return url
