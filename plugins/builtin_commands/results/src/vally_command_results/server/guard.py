"""What every request passes first: who may ask, how, and how much at once."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_LINE = 8 * 1024
MAX_HEADERS = 32 * 1024
MAX_VALUE = 1024
MAX_REQUESTS = 64
TIMEOUT_S = 30.0
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_LOG = logging.getLogger("vally.serve")


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """Values of `Host` that are answered, without port and in lower case; `*` allows all."""

    names: frozenset[str]

    @classmethod
    def of(cls, host: str, further: Iterable[str]) -> AllowedHosts:
        """Those of this machine, the address listened on unless it stands for all, and further ones."""
        own = set() if host in ("0.0.0.0", "::", "") else {host}
        return cls(frozenset(_bare(name) for name in {"localhost", "127.0.0.1", "::1", *own, *further}))

    def accepts(self, header: str | None) -> bool:
        """Whether a request with this header is answered."""
        if "*" in self.names:
            return True
        if not header:
            return False
        name = _bare(header)
        return name in self.names or any(
            name.endswith(known[1:]) and len(name) > len(known) - 1 for known in self.names if known.startswith("*.")
        )


def _bare(name: str) -> str:
    """A host without port, brackets and capitals."""
    text = name.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rpartition(":")[0] if text.count(":") == 1 else text


def error_body(code: str, message: str) -> bytes:
    """The JSON of an error."""
    return json.dumps({"error": {"code": code, "message": message}}, ensure_ascii=False).encode()


class Guard:
    """Refuses what may not be asked, and adds the headers that every answer carries.

    `error_page` makes a page of (status, code, message) for requests outside the API.
    """

    def __init__(self, app: ASGIApp, *, hosts: AllowedHosts, cors: bool, error_page: Any) -> None:
        self._app = app
        self._hosts = hosts
        self._cors = cors
        self._error_page = error_page
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        reply = Reply(send, scope, cors=self._cors)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await self._refuse(reply, scope, *refusal)
        elif scope["method"] == "OPTIONS":
            await reply.plain(
                204, b"", [(b"access-control-allow-methods", b"GET, HEAD"), (b"access-control-max-age", b"600")]
            )
        else:
            await self._answer(scope, receive, reply)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str, str, dict[str, str]] | None:
        allowed = "GET, HEAD, OPTIONS" if self._cors else "GET, HEAD"
        if not self._hosts.accepts(headers.get("host")):
            return 403, "host_not_allowed", "this host name is not allowed; see --allowed-host", {}
        preflight = self._cors and scope["method"] == "OPTIONS" and scope["path"].startswith("/api")
        if scope["method"] not in ("GET", "HEAD") and not preflight:
            return 405, "method_not_allowed", f"method {scope['method']} is not allowed", {"Allow": allowed}
        length = headers.get("content-length", "0")
        if length.strip() not in ("", "0") or "transfer-encoding" in headers:
            return 413, "too_large", "a request body is not accepted", {}
        return self._too_large(scope)

    def _too_large(self, scope: Scope) -> tuple[int, str, str, dict[str, str]] | None:
        line = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        if line > MAX_LINE or sum(len(key) + len(value) for key, value in scope["headers"]) > MAX_HEADERS:
            return 413, "too_large", "the request is too large", {}
        values = (part.partition(b"=")[2] for part in scope["query_string"].split(b"&"))
        if any(len(value) > MAX_VALUE for value in values):
            return 413, "too_large", f"a parameter is longer than {MAX_VALUE} bytes", {}
        if self._running >= MAX_REQUESTS:
            return 503, "unavailable", "too many requests at once", {"Retry-After": "1"}
        return None

    async def _refuse(
        self, reply: Reply, scope: Scope, status: int, code: str, message: str, more: dict[str, str]
    ) -> None:
        further = [(key.lower().encode(), value.encode()) for key, value in more.items()]
        if scope["path"].startswith("/api"):
            body, kind = error_body(code, message), b"application/json"
        else:
            body, kind = self._error_page(status, code, message).encode(), b"text/html; charset=utf-8"
        await reply.plain(status, body, [(b"content-type", kind), *further])

    async def _answer(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        self._running += 1
        try:
            async with asyncio.timeout(TIMEOUT_S):
                # A HEAD request is a GET request whose body is not sent.
                asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
                await self._app(asked, receive, reply)
        except TimeoutError:
            if not reply.started:
                await self._refuse(
                    reply, scope, 503, "unavailable", f"no answer within {TIMEOUT_S:g} s", {"Retry-After": "1"}
                )
        except Exception:
            # The application has answered and logged it, unless the answer itself broke off.
            if not reply.started:
                _LOG.exception("a request failed")
                await self._refuse(reply, scope, 500, "internal", "internal error", {})
        finally:
            self._running -= 1


class Reply:
    """Sends an answer with the headers of all answers."""

    def __init__(self, send: Send, scope: Scope, *, cors: bool) -> None:
        self._send = send
        self._scope = scope
        self._cors = cors
        self.started = False

    async def __call__(self, message: Message) -> None:
        """Pass a message on; the first gets the headers."""
        if message["type"] == "http.response.start":
            self.started = True
            message = {**message, "headers": [*message.get("headers", []), *self._headers(message)]}
        elif self._scope["method"] == "HEAD":
            message = {**message, "body": b""}
        await self._send(message)

    def _headers(self, message: Message) -> list[tuple[bytes, bytes]]:
        found = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]
        is_api = self._scope["path"].startswith("/api")
        if self._cors and is_api:
            found.append((b"access-control-allow-origin", b"*"))
        elif not self._cors:
            found.append((b"cross-origin-resource-policy", b"same-origin"))
        kinds = [value for key, value in message.get("headers", []) if key == b"content-type"]
        if any(kind.startswith(b"text/html") for kind in kinds):
            found.append((b"content-security-policy", PAGE_POLICY.encode()))
        return found

    async def plain(self, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
        """Send a whole answer."""
        length = (b"content-length", str(len(body)).encode())
        await self({"type": "http.response.start", "status": status, "headers": [*headers, length]})
        await self({"type": "http.response.body", "body": body})
