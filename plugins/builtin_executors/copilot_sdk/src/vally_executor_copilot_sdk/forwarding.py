"""Passing model calls on from this process, for a runtime that has no network and knows neither endpoint nor key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
from copilot.copilot_request_handler import CopilotRequestContext, CopilotRequestHandler

from vally_executor_copilot_sdk.hermetic import PLACEHOLDER_HOST, PLACEHOLDER_KEY, credential

CONNECT_LIMIT_S = 60.0
_KEPT_HEADERS = ("content-type", "retry-after", "retry-after-ms")
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_OF_THE_CONNECTION = frozenset({"host", "content-length", "transfer-encoding", "accept-encoding", "connection"})


class Gateway:
    """Sends requests for the placeholder address to `provider`, which is in the SDK's spelling and holds secrets.

    Only what lies below the provider's path is passed on. `redact` hides secrets in what an endpoint says of an error.
    Await `close` at the end.
    """

    def __init__(self, provider: Mapping[str, Any], redact: Callable[[str], str]) -> None:
        self._base = httpx.URL(provider["base_url"])
        parts = urlsplit(provider["base_url"])
        self._host, self._origin = parts.hostname or "", f"{parts.scheme}://{parts.netloc}"
        self._key = credential(provider)
        self._headers: Mapping[str, str] = provider.get("headers") or {}
        self._redact = redact
        self._client: httpx.AsyncClient | None = None

    async def send(self, request: httpx.Request) -> httpx.Response:
        """The endpoint's answer; its body is read from there as it comes, or whole when it tells an error.

        Raises `ConnectionError`, which does not name the endpoint, when there is none.
        """
        if not self._is_for_the_endpoint(request.url):
            return httpx.Response(404, json={"error": {"message": "only the model endpoint can be asked"}})
        if self._client is None:
            # A proxy leads elsewhere, and never to this machine.
            proxies = self._host not in _THIS_MACHINE
            self._client = httpx.AsyncClient(timeout=httpx.Timeout(None, connect=CONNECT_LIMIT_S), trust_env=proxies)
        try:
            answer = await self._client.send(await self._addressed(request), stream=True)
            headers = {name: answer.headers[name] for name in _KEPT_HEADERS if name in answer.headers}
            if answer.status_code < httpx.codes.BAD_REQUEST:
                return httpx.Response(answer.status_code, headers=headers, stream=_Body(answer))
            told = (await answer.aread()).decode("utf-8", "replace")
        except httpx.HTTPError as error:
            reason = self._hidden(str(error)) or type(error).__name__
            raise ConnectionError(f"the model endpoint does not answer: {reason}") from None
        return httpx.Response(answer.status_code, headers=headers, content=self._hidden(told).encode())

    def named(self, text: str) -> str:
        """What the runtime says, without secrets and for readers who know the endpoint by its own address."""
        return self._redact(text).replace(f"https://{PLACEHOLDER_HOST}", self._origin)

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _is_for_the_endpoint(self, url: httpx.URL) -> bool:
        # Whoever gets hold of the runtime's streams must not reach other services there with the key.
        below = self._base.path.rstrip("/") + "/"
        is_below = url.path.startswith(below) and not {".", ".."} & set(url.path.split("/"))
        return url.scheme == "https" and url.host == PLACEHOLDER_HOST and url.port is None and is_below

    async def _addressed(self, request: httpx.Request) -> httpx.Request:
        headers = httpx.Headers(list(self._kept(request.headers.multi_items())))
        headers.update(self._headers)
        url = request.url.copy_with(scheme=self._base.scheme, host=self._base.host, port=self._base.port)
        return httpx.Request(request.method, url, headers=headers, content=await request.aread())

    def _kept(self, headers: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
        for name, value in headers:
            if name.lower() not in _OF_THE_CONNECTION:
                # The runtime knows where each dialect has its key.
                yield name, value.replace(PLACEHOLDER_KEY, self._key) if self._key else value

    def _hidden(self, text: str) -> str:
        text = self._redact(text)
        for secret in (self._key, self._host):
            text = text.replace(secret, PLACEHOLDER_HOST) if secret else text
        return text


class Forwarder(CopilotRequestHandler):
    """Passes each model call on."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def send_request(self, request: httpx.Request, ctx: CopilotRequestContext) -> httpx.Response:
        return await self._gateway.send(request)

    async def open_websocket(self, ctx: CopilotRequestContext) -> Any:
        raise RuntimeError("websockets are not passed on")


class _Body(httpx.AsyncByteStream):
    """The body of an answer, decoded; closing it ends the answer."""

    def __init__(self, answer: httpx.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._answer.aiter_bytes():
            yield chunk

    async def aclose(self) -> None:
        await self._answer.aclose()
