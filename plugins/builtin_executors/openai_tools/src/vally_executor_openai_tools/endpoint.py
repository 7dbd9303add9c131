"""The endpoint of the model: requests, their time limit, and how they are repeated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import anyio
import httpx2

from vally import (
    EndpointError,
    ExecutorError,
    OptionalParameters,
    ProviderConfig,
    __version__,
    endpoint_answer,
    parse_duration,
    provider_headers,
    provider_secrets,
    without_secrets,
)
from vally_executor_openai_tools.config import OpenAiToolsConfig
from vally_executor_openai_tools.reply import Reply, read_reply

LONGEST_WAIT_S = 30.0
LINE_CHARACTERS = 200

Body = Mapping[str, Any]


def new_client() -> httpx2.AsyncClient:
    """A client for all trials; a redirect is not followed, because the credentials are meant for one endpoint."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
    headers = {"user-agent": f"vally/{__version__}"}
    return httpx2.AsyncClient(follow_redirects=False, timeout=None, limits=limits, headers=headers)


class Endpoint:
    """Asks one model of one provider."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        provider: ProviderConfig,
        model: str,
        config: OpenAiToolsConfig,
        parameters: OptionalParameters,
    ) -> None:
        self._client = client
        self._model = model
        self._url = chat_url(provider, model)
        self._headers = {**provider_headers(provider), "content-type": "application/json"}
        self._secrets = provider_secrets(provider)
        self._timeout_s = parse_duration(config.request_timeout) / 1000
        self._retries = config.retries
        self._output_tokens = config.output_tokens
        self._parameters = parameters

    async def complete(self, body: Body, *, seed: int | None) -> Reply:
        """Ask for an answer; raises `EndpointError` when there is none, `ExecutorError` when it cannot be read."""
        try:
            return await self._with_accepted(body, seed)
        except UnreadableError as error:
            raise ExecutorError(error.message, code="agent-protocol", details={"line": error.body}) from None

    async def _with_accepted(self, body: Body, seed: int | None) -> Reply:
        limit = self._output_tokens

        async def send(accepted: Body) -> Reply:
            sent = {"model": self._model, **body, **accepted}
            # Newer models of one vendor want another name; the rest of the world knows only the older one.
            if limit is not None and "max_tokens" not in accepted:
                sent["max_completion_tokens"] = limit
            return await self._repeated(sent)

        return await self._parameters.send(self._model, {"max_tokens": limit, "seed": seed}, send)

    async def _repeated(self, body: Body) -> Reply:
        attempt = 0
        while True:
            try:
                return await self._once(body)
            except EndpointError as error:
                if not error.retryable or attempt == self._retries:
                    raise
                told = error.retry_after_s
                await anyio.sleep(min(2.0**attempt if told is None else told, LONGEST_WAIT_S))
            attempt += 1

    async def _once(self, body: Body) -> Reply:
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        try:
            with anyio.fail_after(self._timeout_s):
                response = await self._client.post(self._url, content=content, headers=self._headers)
        except TimeoutError:
            raise EndpointError(f"no answer within {self._timeout_s:g}s", retryable=True) from None
        except httpx2.InvalidURL as error:
            raise ExecutorError(f"provider.baseUrl: {error}", code="executor-config") from None
        except httpx2.HTTPError as error:
            raise EndpointError.of_connection(error, self._secrets) from error
        except RuntimeError:
            if not self._client.is_closed:
                raise
            raise ExecutorError("the run was shut down", code="session-lost", retryable=True) from None
        if not response.is_success:
            raise EndpointError.of_status(response.status_code, response.text, response.headers, self._secrets)
        return self._reply(response)

    def _reply(self, response: httpx2.Response) -> Reply:
        try:
            answer = endpoint_answer(response.content, response.headers, self._secrets)
        except EndpointError as error:
            raise error if error.status is not None else self._unreadable(error.message, response.text) from None
        reply = read_reply(answer)
        if reply is None:
            raise self._unreadable("the endpoint's answer has no message", response.text)
        return reply

    def _unreadable(self, message: str, text: str) -> UnreadableError:
        return UnreadableError(message, retryable=True, body=without_secrets(text, self._secrets)[:LINE_CHARACTERS])


class UnreadableError(EndpointError):
    """What came back is no answer, such as the page of a gateway. Asking again may help."""


def chat_url(provider: ProviderConfig, model: str) -> str:
    """Where chat completions are asked for; resources of Azure are known by longer addresses too."""
    base = (provider.base_url or "").rstrip("/")
    if provider.type != "azure":
        return f"{base}/chat/completions"
    host = base.removesuffix("/v1").removesuffix("/openai")
    if provider.api_version is None:
        return f"{host}/openai/v1/chat/completions"
    version = quote(provider.api_version, safe="")
    return f"{host}/openai/deployments/{quote(model, safe='')}/chat/completions?api-version={version}"
