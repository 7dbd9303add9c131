"""A relay between a client and an endpoint, both of which write every byte themselves."""

from __future__ import annotations

import os
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import h11
from anyio.streams.tls import TLSListener

from vally import ProviderConfig
from vally_backend_local import Forward, ModelRelays, model_relays
from vally_backend_local.relay.limits import Limits

KEY = "canary-51b3-real-key"
HEADER_SECRET = "canary-77aa-header-secret"
SMALL = Limits(connections=4, head_s=0.2, idle_s=0.2, piece_s=0.2, linger_s=0.2, header_bytes=8192)
WAIT_S = 20
OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nfine"

Answer = Callable[["Asked"], Awaitable[None]]


@dataclass
class Asked:
    """A request as it arrived at the endpoint: the head as text, then the stream for everything else."""

    head: str
    stream: anyio.abc.SocketStream
    rest: bytes

    @property
    def line(self) -> str:
        return self.head.split("\r\n")[0]

    @property
    def headers(self) -> dict[str, str]:
        lines = (line.partition(":") for line in self.head.split("\r\n")[1:] if line)
        return {name.strip().lower(): value.strip() for name, _, value in lines}

    async def body(self, length: int) -> bytes:
        while len(self.rest) < length:
            self.rest += await self.stream.receive()
        return self.rest


@dataclass
class Endpoint:
    """Answers every request by `answer`, one for each connection; `asked` are the requests so far."""

    port: int
    answer: Answer
    scheme: str = "http"
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    async def handle(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            told = b""
            while b"\r\n\r\n" not in told:
                try:
                    told += await stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    return
            head, _, rest = told.partition(b"\r\n\r\n")
            self.asked.append(Asked(head.decode(), stream, rest))
            await self.answer(self.asked[-1])


async def fine(asked: Asked) -> None:
    await asked.stream.send(OK)


@asynccontextmanager
async def endpoint(answer: Answer = fine, tls: ssl.SSLContext | None = None) -> AsyncIterator[Endpoint]:
    """An endpoint that is there inside the context."""
    listener: Any = await anyio.create_tcp_listener(local_host="127.0.0.1")
    made = Endpoint(listener.extra(anyio.abc.SocketAttribute.local_port), answer, "http" if tls is None else "https")
    if tls is not None:
        listener = TLSListener(listener, tls, standard_compatible=False)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, made.handle)
        yield made
        tasks.cancel_scope.cancel()


@dataclass
class Client:
    """What an agent has: an address, and a key that is none."""

    told: ProviderConfig
    forward: Forward
    warnings: list[str]
    relays: ModelRelays

    @property
    def token(self) -> str:
        return self.told.api_key or self.told.bearer_token or ""

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[anyio.abc.SocketStream]:
        async with await connect(self.forward.socket) as stream:
            with anyio.fail_after(WAIT_S):
                yield stream

    async def send(self, text: bytes) -> Reply:
        """Send what is written, with the token in the place of `TOKEN`, and read one answer to the end."""
        async with self.connection() as stream:
            await stream.send(text.replace(b"TOKEN", self.token.encode()))
            return await reply(stream)

    async def get(self, target: str = "/v1/models", *lines: str) -> Reply:
        return await self.send(request("GET", target, *lines))

    async def post(self, target: str = "/v1/chat", *lines: str, body: bytes = b"{}") -> Reply:
        return await self.send(request("POST", target, f"Content-Length: {len(body)}", *lines) + body)


def request(method: str, target: str, *lines: str, key: str = "Authorization: Bearer TOKEN") -> bytes:
    """The head of a request; `key` may be empty."""
    words = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", *([key] if key else []), *lines, "", ""]
    return "\r\n".join(words).encode()


async def connect(path: Path) -> anyio.abc.SocketStream:
    """Connect to a socket whose path may be longer than an address has room for."""
    if sys.platform != "linux":
        return await anyio.connect_unix(path)
    directory = os.open(path.parent, os.O_RDONLY)
    made = socket.socket(socket.AF_UNIX)
    try:
        made.connect(f"/proc/self/fd/{directory}/{path.name}")
    except OSError:
        made.close()
        raise
    finally:
        os.close(directory)
    made.setblocking(False)
    return await anyio.abc.SocketStream.from_socket(made)


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


async def reply(stream: anyio.abc.SocketStream, method: str = "GET") -> Reply:
    """Read an answer; `whole` tells whether it came to its end in order."""
    state = h11.Connection(h11.CLIENT)
    state.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
    state.send(h11.EndOfMessage())
    found = Reply(0, {}, b"", whole=False)
    while True:
        try:
            event: Any = state.next_event()
            if event is h11.NEED_DATA:
                state.receive_data(await received(stream))
                continue
        except h11.RemoteProtocolError:
            return found
        if isinstance(event, h11.Response):
            found.status = event.status_code
            found.headers = {name.decode(): value.decode() for name, value in event.headers}
        elif isinstance(event, h11.Data):
            found.body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            found.whole = True
            return found
        elif isinstance(event, h11.ConnectionClosed):
            return found


async def received(stream: anyio.abc.SocketStream) -> bytes:
    """The next bytes; none at the end."""
    try:
        return await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return b""


@asynccontextmanager
async def open_relay(directory: Path, url: str, *, limits: Limits | None = None, **facts: Any) -> AsyncIterator[Client]:
    """A relay to an address, inside the context; `facts` are those of the provider."""
    warnings: list[str] = []
    provider = ProviderConfig(**{"type": "openai", "base_url": url, "api_key": KEY, **facts})
    async with model_relays(limits) as relays:
        told = await relays.reach(provider, directory, warnings.append)
        yield Client(told, relays.forwards[-1], warnings, relays)
