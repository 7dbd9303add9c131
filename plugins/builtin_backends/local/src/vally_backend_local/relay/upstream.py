"""The provider's side of a relay: what may be asked, and asking it."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import h11
import httpx2

from vally import ProviderConfig, is_loopback, provider_secrets
from vally_backend_local.relay.answers import METHOD, NO_TOKEN, OUTSIDE, WEBSOCKET, Refusal
from vally_backend_local.relay.credentials import Concealer, Header, Token
from vally_backend_local.relay.targets import is_below

CONNECT_LIMIT_S = 60.0
METHODS = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"})
"""Not TRACE, which makes a server repeat the key, and not CONNECT."""
OF_THE_CONNECTION = frozenset(
    {
        b"connection",
        b"expect",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_DECODABLE = ("gzip", "deflate")
_FIRST_ERROR, _FIRST_REDIRECT = 400, 300
_NOT_MODIFIED = 304


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a provider; `pieces` of its body come as they arrive and raise `httpx2.HTTPError`."""

    status: int
    reason: bytes
    headers: list[Header]
    pieces: AsyncIterator[bytes]


class Upstream:
    """Asks one resolved provider, in whose place agents have `token` as a key; await `close` at the end.

    `warn` is told once that the provider cannot be used.
    """

    def __init__(self, provider: ProviderConfig, token: str, warn: Callable[[str], None]) -> None:
        base = httpx2.URL(provider.base_url or "")
        self._origin = base.copy_with(raw_path=b"/")
        self._base = base.raw_path.partition(b"?")[0]
        self._token = Token(token, provider.api_key or provider.bearer_token)
        self._own = [(name.lower().encode(), value.encode()) for name, value in provider.headers.items()]
        self._secrets = provider_secrets(provider)
        self._warn: Callable[[str], None] | None = warn
        limits = httpx2.Limits(max_connections=None)
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=CONNECT_LIMIT_S),
            limits=limits,
            # A proxy leads elsewhere, and never to this machine; a transport of one's own has none.
            transport=httpx2.AsyncHTTPTransport(limits=limits) if is_loopback(base.host) else None,
            follow_redirects=False,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def refusal(self, request: h11.Request) -> Refusal | None:
        """Why a request is not passed on."""
        headers = list(request.headers)
        if not self._token.is_presented(headers, request.target):
            return NO_TOKEN
        if request.method not in METHODS:
            return METHOD
        if any(name == b"upgrade" and b"websocket" in value.lower() for name, value in headers):
            return WEBSOCKET
        return None if is_below(request.target, self._base) else OUTSIDE

    @asynccontextmanager
    async def answer(self, request: h11.Request, body: AsyncIterator[bytes] | None) -> AsyncIterator[Answer | Refusal]:
        """Pass a request on, and give the answer, or what to say when there is none that may be passed on."""
        try:
            answer = await self._client.send(self._outgoing(request, body), stream=True)
        except (httpx2.HTTPError, UnicodeError) as error:
            yield self._unusable(f"the model endpoint does not answer: {_reason(error)}", 502)
            return
        try:
            if _FIRST_REDIRECT <= answer.status_code < _FIRST_ERROR and answer.status_code != _NOT_MODIFIED:
                target = answer.headers.get("location", "")
                yield self._unusable(f"the model endpoint redirects to '{target}', which is not followed", 400)
            else:
                yield self._incoming(answer)
        finally:
            await answer.aclose()

    def _outgoing(self, request: h11.Request, body: AsyncIterator[bytes] | None) -> httpx2.Request:
        headers = [*_end_to_end(self._token.headers(request.headers), {name for name, _ in self._own}), *self._own]
        # Without it any coding is welcome, which is not what a client means that names none.
        if not any(name == b"accept-encoding" for name, _ in headers):
            headers.append((b"accept-encoding", b"identity"))
        return httpx2.Request(
            request.method.decode(),
            self._origin,
            headers=headers,
            content=body,
            extensions={
                "timeout": self._client.timeout.as_dict(),
                "target": self._token.target(request.target),
            },
        )

    def _incoming(self, answer: httpx2.Response) -> Answer:
        concealer = Concealer(self._secrets)
        raw = [(name.lower(), value) for name, value in answer.headers.raw]
        headers = [(name, concealer.whole(value)) for name, value in _end_to_end(raw, {b"host"})]
        coding = answer.headers.get("content-encoding", "identity").strip().lower()
        pieces = answer.aiter_raw()
        # Errors may repeat the key, so they are read even when they are packed.
        if answer.status_code >= _FIRST_ERROR and coding in _DECODABLE:
            changed = (b"content-encoding", b"content-length")
            headers, pieces = [item for item in headers if item[0] not in changed], answer.aiter_bytes()
        elif coding != "identity":
            concealer = Concealer(())
        reason = answer.extensions.get("reason_phrase", b"")
        return Answer(answer.status_code, reason, headers, _concealed(pieces, concealer))

    def _unusable(self, message: str, status: int) -> Refusal:
        concealer = Concealer(self._secrets)
        text = concealer.whole(message.encode("utf-8", "replace")).decode("utf-8", "replace")
        warn, self._warn = self._warn, None
        if warn is not None:
            warn(f"{text} ({self._origin.scheme}://{self._origin.netloc.decode()})")
        return Refusal(status, text)


def _end_to_end(headers: Iterable[Header], without: set[bytes]) -> Iterator[Header]:
    """The headers that are not about one connection only, nor in `without`."""
    headers = list(headers)
    named = {word.strip().lower() for name, value in headers if name == b"connection" for word in value.split(b",")}
    dropped = OF_THE_CONNECTION | named | without | {b"host"}
    return (item for item in headers if item[0] not in dropped)


async def _concealed(pieces: AsyncIterator[bytes], concealer: Concealer) -> AsyncIterator[bytes]:
    async for piece in pieces:
        if passed := concealer.feed(piece):
            yield passed
    if rest := concealer.rest():
        yield rest


def _reason(error: Exception) -> str:
    if isinstance(error, httpx2.LocalProtocolError):
        # Its words may repeat the key in another spelling.
        return "the request cannot be sent as it is"
    if isinstance(error, httpx2.ConnectTimeout):
        return f"no connection within {CONNECT_LIMIT_S:g} s"
    return _system_reason(error) or str(error) or type(error).__name__


def _system_reason(error: BaseException) -> str | None:
    """What the system said, of which libraries tell less; None when it was not the system."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return str(cause)
        if isinstance(cause, OSError) and cause.errno is not None:
            return os.strerror(cause.errno) if cause.errno > 0 else cause.strerror
        cause = cause.__cause__ or cause.__context__
    return None


def rewritten(base_url: str, port: int) -> str:
    """The address of a provider as it is behind a loopback port; the path stays, because agents look at it."""
    return urlsplit(base_url)._replace(scheme="http", netloc=f"127.0.0.1:{port}").geturl()
