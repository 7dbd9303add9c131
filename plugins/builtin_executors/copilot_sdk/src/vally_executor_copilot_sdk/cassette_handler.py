"""Recording the model calls of a trial, and answering them from a cassette."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from copilot.copilot_request_handler import CopilotRequestHandler

from vally import ExecutorError
from vally_executor_copilot_sdk.cassette import Cassette, Exchange, Request
from vally_executor_copilot_sdk.cassette_text import Places, joined, request_hash, request_shape, shape_difference

if TYPE_CHECKING:
    import httpx
    from copilot.copilot_request_handler import CopilotRequestContext

    from vally_executor_copilot_sdk.forwarding import Gateway

_KEPT_HEADERS = ("content-type", "retry-after")
_NO_ANSWER = 400
"""A status that the runtime does not ask again after."""


class _Handler(CopilotRequestHandler):
    """Numbers agents in the order in which they first ask."""

    def __init__(self, places: Places, redact: Callable[[str], str]) -> None:
        self._places = places
        self._redact = redact
        self._agents: dict[str | None, int] = {}

    def agent(self, ctx: CopilotRequestContext) -> int:
        return self._agents.setdefault(ctx.agent_id, len(self._agents))

    async def asked(self, request: httpx.Request) -> Request:
        """What is compared of a request."""
        text = self._stored((await request.aread()).decode("utf-8", "replace"))
        return Request(hash=request_hash(text), shape=request_shape(request.url.path, text))

    def _stored(self, text: str) -> str:
        return self._redact(self._places.without_paths(text))

    async def open_websocket(self, ctx: CopilotRequestContext) -> Any:
        raise RuntimeError("cassettes do not hold websockets")


class Recorder(_Handler):
    """Passes calls on, through `gateway` if there is one, and keeps them. Await `close` at the end."""

    def __init__(self, places: Places, redact: Callable[[str], str], gateway: Gateway | None = None) -> None:
        super().__init__(places, redact)
        self._gateway = gateway
        self._exchanges: list[Exchange] = []
        self._client: httpx.AsyncClient | None = None

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        return tuple(self._exchanges)

    async def send_request(self, request: httpx.Request, ctx: CopilotRequestContext) -> httpx.Response:
        import httpx

        agent, asked, began = self.agent(ctx), await self.asked(request), time.monotonic()
        response = await self._passed_on(request)
        if ctx.session_id is not None:
            self._keep(agent, asked, request, response, began)
        headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
        return httpx.Response(response.status_code, headers=headers, content=response.content)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _passed_on(self, request: httpx.Request) -> httpx.Response:
        """The whole response."""
        import httpx

        if self._gateway is not None:
            response = await self._gateway.send(request)
            try:
                await response.aread()
            finally:
                await response.aclose()
            return response
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=None, follow_redirects=False, trust_env=False)
        return await self._client.send(request)

    def _keep(self, agent: int, asked: Request, request: httpx.Request, response: httpx.Response, began: float) -> None:
        content_type = response.headers.get("content-type", "")
        self._exchanges.append(
            Exchange(
                n=len(self._exchanges),
                agent=agent,
                method=request.method,
                path=request.url.path,
                request=asked,
                status=response.status_code,
                content_type=content_type,
                body=self._stored(joined(response.content.decode("utf-8", "replace"), content_type)),
                duration_ms=round((time.monotonic() - began) * 1000),
            )
        )


class Player(_Handler):
    """Answers from a cassette. `miss` is the first call that it has no answer for."""

    def __init__(self, places: Places, redact: Callable[[str], str], cassette: Cassette, *, strict: bool) -> None:
        super().__init__(places, redact)
        self._cassette = cassette
        self._strict = strict
        self._played: dict[int, int] = {}
        self.miss: ExecutorError | None = None

    @property
    def left(self) -> int:
        """How many recorded calls were not made."""
        return len(self._cassette.exchanges) - sum(self._played.values())

    async def send_request(self, request: httpx.Request, ctx: CopilotRequestContext) -> httpx.Response:
        import httpx

        if ctx.session_id is None:
            return httpx.Response(404)
        agent, asked = self.agent(ctx), await self.asked(request)
        number = self._played.get(agent, 0)
        recorded = self._cassette.of_agent(agent)[number : number + 1]
        problem = self._difference(recorded[0].request, asked) if recorded else "nothing more was recorded"
        if problem is not None:
            message = f"exchange {number} of agent {agent}: {problem}"
            self.miss = self.miss or ExecutorError(message, code="cassette-miss")
            return httpx.Response(_NO_ANSWER, json={"error": {"message": f"cassette-miss: {message}"}})
        self._played[agent] = number + 1
        headers = {"content-type": recorded[0].content_type}
        body = self._places.with_paths(recorded[0].body)
        return httpx.Response(recorded[0].status, headers=headers, content=body.encode())

    async def close(self) -> None:
        """Nothing is open."""

    def _difference(self, recorded: Request, asked: Request) -> str | None:
        problem = shape_difference(recorded.shape, asked.shape)
        if problem is None and self._strict and recorded.hash != asked.hash:
            return "the text of the request is another one"
        return problem
