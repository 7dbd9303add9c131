"""The endpoint: a client of the library that sends nothing but what the provider says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vally import EndpointError, ProviderConfig, outgoing_headers, provider_headers, provider_secrets

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
        """The answer as it came: servers that are merely compatible leave out much of what the library's types have."""
        import openai

        try:
            answer = await self._client.post(path, body=body, cast_to=object)
        except openai.APIStatusError as error:
            response = error.response
            raise EndpointError.of_status(error.status_code, response.text, response.headers, self._secrets) from error
        except openai.APIConnectionError as error:
            raise EndpointError.of_connection(error, self._secrets) from error
        except (openai.APIError, ValueError, RecursionError) as error:
            raise EndpointError("the endpoint's answer is not JSON") from error
        if not isinstance(answer, dict):
            raise EndpointError("the endpoint's answer is not a JSON object")
        return answer


def _client(provider: ProviderConfig) -> AsyncOpenAI:
    import openai

    own = provider_headers(provider)

    async def send_own_headers_only(request: Any) -> None:
        headers = outgoing_headers(request.headers, own)
        for name in list(request.headers):
            if name not in headers:
                del request.headers[name]
        request.headers.update(headers)

    # Redirects are not followed, because the headers of this endpoint are meant for no other. The time limit is that
    # of the question, and whoever asks does the retries.
    http = openai.DefaultAsyncHttpxClient(
        event_hooks={"request": [send_own_headers_only]}, follow_redirects=False, timeout=None
    )
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
