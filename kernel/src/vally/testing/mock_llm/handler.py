"""Answering one connection over HTTP."""

from __future__ import annotations

import contextlib
import gzip
import hmac
import json
import os
import socket
import struct
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from vally.testing.mock_llm.answering import Choice, choose, make_answer, tokens
from vally.testing.mock_llm.conversation import Event, ModelRequest, Rendering
from vally.testing.mock_llm.dialects import Dialect, dialect_of, models_body
from vally.testing.mock_llm.log import MockRequest, path_without_credentials, without_credentials
from vally.testing.mock_llm.script import Fault, ScriptError

if TYPE_CHECKING:
    from vally.testing.mock_llm.server import MockServer

MAX_BODY = 256 * 2**20
NOT_JSON = '{"id": "mock", "oops'


class MockHandler(BaseHTTPRequestHandler):
    """One connection, kept alive over several requests."""

    protocol_version = "HTTP/1.1"
    server_version = "vally-mock"
    sys_version = ""
    # Small answers would else wait for the acknowledgement of what was sent before.
    disable_nagle_algorithm = True
    wbufsize = -1
    server: MockServer

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing; requests are logged by the server."""

    def do_GET(self) -> None:
        """List the models."""
        path = urlsplit(self.path).path.rstrip("/")
        if path.endswith("/models"):
            self._finish(None, None, models_body(path), 200)
        else:
            self._finish(None, None, {"error": {"message": f"not found: {path}"}}, 404)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Answer a request in the dialect of its path."""
        url = urlsplit(self.path)
        dialect = dialect_of(url.path.rstrip("/"), parse_qs(url.query))
        body: Any = None
        try:
            body = _parsed(self._raw_body())
            if dialect is None:
                self._finish(body, None, {"error": {"message": f"not found: {url.path}"}}, 404)
            elif not self._has_key():
                self._finish(body, None, dialect.error(401, "invalid API key"), 401)
            elif not isinstance(body, dict):
                self._finish(body, None, dialect.error(400, "the body is not a JSON object"), 400)
            else:
                self._answer(dialect, body)
        except (ScriptError, RecursionError, zlib.error, gzip.BadGzipFile) as error:
            wrong = dialect.error if dialect is not None else _plain_error
            self._finish(body, None, wrong(400, str(error) or type(error).__name__), 400)

    def _answer(self, dialect: Dialect, body: dict[str, Any]) -> None:
        request = dialect.read(body)
        if dialect.counts is not None:
            self._finish(body, None, {dialect.counts: tokens(request.characters)}, 200)
            return
        choice = choose(request, self.server.values)
        fault = self.server.faults.next(choice)
        if choice.step.sleep and not self.server.pause(choice.step.sleep):
            self.close_connection = True
            return
        if fault is not None and fault.kind == "fail":
            extra = {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
            error = dialect.error(fault.value, fault.message)
            self._finish(body, choice.number, error, fault.value, extra)
        elif fault is not None and fault.kind == "reset":
            self._log(body, choice.number, None)
            self._reset()
        else:
            self._log(body, choice.number, 200)
            rendering = dialect.render(make_answer(request, choice.step), request)
            self._send(dialect, request, rendering, choice, fault)

    def _send(
        self, dialect: Dialect, request: ModelRequest, rendering: Rendering, choice: Choice, fault: Fault | None
    ) -> None:
        kind = None if fault is None else fault.kind
        if not request.stream:
            data = NOT_JSON.encode() if kind == "malformed" else _json(rendering.body)
            cut = len(data) // 2 if kind == "truncate" else len(data)
            self._head(200, "application/json", {"Content-Length": str(len(data))})
            self.wfile.write(data[:cut])
            self.wfile.flush()
            self.close_connection = self.close_connection or cut < len(data)
            return
        events = rendering.events
        if kind == "malformed":
            events = (*events[:1], (None, NOT_JSON))
        elif fault is not None and kind == "truncate":
            events = events[: fault.value]
        self._stream(dialect, events, choice.step.chunk_delay, whole=kind != "truncate")

    def _stream(self, dialect: Dialect, events: tuple[Event, ...], delay: float, *, whole: bool) -> None:
        content_type = "text/event-stream" if dialect.as_events else "application/json"
        self._head(200, content_type, {"Cache-Control": "no-cache", "Transfer-Encoding": "chunked"})
        for number, piece in enumerate(_event_pieces(events) if dialect.as_events else _list_pieces(events)):
            if number and delay and not self.server.pause(delay):
                whole = False
                break
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        if whole:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True
        self.wfile.flush()

    def _head(self, status: int, content_type: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _finish(
        self, body: Any, step: int | None, answer: Any, status: int, headers: dict[str, str] | None = None
    ) -> None:
        self._log(body, step, status)
        data = _json(answer)
        self._head(status, "application/json", {"Content-Length": str(len(data)), **(headers or {})})
        if self.command != "HEAD":
            self.wfile.write(data)
        self.wfile.flush()

    def _log(self, body: Any, step: int | None, status: int | None) -> None:
        self.server.log.add(
            MockRequest(
                method=self.command,
                path=path_without_credentials(self.path),
                headers=without_credentials(self.headers.items()),
                body=body,
                step=step,
                status=status,
            )
        )

    def _raw_body(self) -> bytes:
        if "chunked" in (self.headers.get("Transfer-Encoding") or "").lower():
            data = b"".join(self._chunks())
        else:
            length = self.headers.get("Content-Length") or "0"
            if not length.isdigit() or int(length) > MAX_BODY:
                self.close_connection = True
                raise ScriptError("the request has no usable length")
            data = self.rfile.read(int(length))
        encoding = (self.headers.get("Content-Encoding") or "").lower()
        if encoding == "gzip":
            return gzip.decompress(data)
        return zlib.decompress(data) if encoding == "deflate" else data

    def _chunks(self) -> Iterator[bytes]:
        total = 0
        while True:
            size = int(self.rfile.readline(100).split(b";")[0].strip() or b"0", 16)
            total += size
            if total > MAX_BODY:
                self.close_connection = True
                raise ScriptError("the request is too long")
            chunk = self.rfile.read(size)
            self.rfile.readline(100)
            if not size:
                return
            yield chunk

    def _has_key(self) -> bool:
        wanted = self.server.api_key
        if wanted is None:
            return True
        bearer = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        given = [bearer, *(self.headers.get(name) or "" for name in ("x-api-key", "api-key", "x-goog-api-key"))]
        given += parse_qs(urlsplit(self.path).query).get("key", [])
        return any(hmac.compare_digest(value.encode(), wanted.encode()) for value in given)

    def _reset(self) -> None:
        """Close the connection so that the other side sees a reset and not an end."""
        linger = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True
        self.server.resetting.add(self.connection)

    def handle(self) -> None:
        """Serve the connection; that the other side goes away is its own affair."""
        with contextlib.suppress(ConnectionError, TimeoutError):
            super().handle()

    def finish(self) -> None:
        """End the connection."""
        with contextlib.suppress(ConnectionError, ValueError, OSError):
            super().finish()


def _plain_error(_: int, message: str) -> dict[str, Any]:
    return {"error": {"message": message}}


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data or b"{}")
    except ValueError:
        return data.decode("utf-8", "replace")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _event_pieces(events: tuple[Event, ...]) -> Iterator[bytes]:
    for name, data in events:
        head = f"event: {name}\n" if name else ""
        text = data.encode() if isinstance(data, str) else _json(data)
        yield head.encode() + b"data: " + text + b"\n\n"


def _list_pieces(events: tuple[Event, ...]) -> Iterator[bytes]:
    for number, (_, data) in enumerate(events):
        text = data.encode() if isinstance(data, str) else _json(data)
        yield (b",\r\n" if number else b"[") + text
    yield b"]"
