"""MCP servers behind an address, for the proxy: streamable HTTP, and the older pair of SSE stream and POST.

Part of the stand-alone program `mcp_proxy.py`; needs the standard library only.
"""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

SECONDS = 600.0
"""How long a connection may be silent."""
START_SECONDS = 30.0
SESSION = "Mcp-Session-Id"
VERSION = "MCP-Protocol-Version"
NO_ANSWER = -32000


class RemoteServer:
    """Sends lines of JSON-RPC by POST; `lines` yields what comes back, until `close`.

    With `sse` the answers come by a stream that is opened first and names the address for messages.
    """

    def __init__(self, url: str, headers: dict[str, str], *, sse: bool) -> None:
        self._url = url
        self._headers = headers
        self._sse = sse
        self._answers: queue.Queue[bytes | None] = queue.Queue()
        self._session: dict[str, str] = {}
        self._endpoint: str | None = None if sse else url
        self._ready = threading.Event()
        self._failure: str | None = None
        if sse:
            threading.Thread(target=self._listen, args=(url,), daemon=True).start()

    def lines(self) -> Iterator[bytes]:
        """What the server says, a line for each message."""
        while (line := self._answers.get()) is not None:
            yield line

    def send(self, line: bytes) -> bool:
        """Send one message without waiting for its answer; returns whether more may be sent."""
        # Messages before the first answer have an order: the session begins with it.
        if self._session or self._sse:
            threading.Thread(target=self._post, args=(line,), daemon=True).start()
        else:
            self._post(line)
        return True

    def close(self) -> None:
        """End the session, as far as the server lets it end."""
        if SESSION in self._session:
            with contextlib.suppress(OSError, ValueError):
                self._open(self._url, "DELETE", timeout=2.0).close()
        self._answers.put(None)

    def wait(self) -> int:
        """The exit code of the proxy."""
        return 0

    def terminate(self) -> None:
        """Say nothing more."""
        self._answers.put(None)

    def _post(self, line: bytes) -> None:
        try:
            with self._open(self._address(), "POST", line) as response:
                self._note_session(response, line)
                kind = response.headers.get_content_type()
                if kind == "text/event-stream":
                    self._events(response)
                elif kind == "application/json" and (body := response.read()).strip():
                    self._answer(body)
        except (OSError, ValueError) as error:
            self._refuse(line, _reason(error))

    def _address(self) -> str:
        if self._endpoint is None and not self._ready.wait(START_SECONDS):
            raise OSError("the stream of the server names no address for messages")
        if self._endpoint is None:
            raise OSError(self._failure or "the stream of the server ended")
        return self._endpoint

    def _open(self, url: str, method: str, data: bytes | None = None, *, timeout: float = SECONDS) -> Any:
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            **self._headers,
            **self._session,
        }
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise OSError(f"{url} is no http address")
        request = urllib.request.Request(url, data=data, headers=headers, method=method)  # checked above
        return urllib.request.urlopen(request, timeout=timeout)

    def _note_session(self, response: Any, line: bytes) -> None:
        """Keep what later requests have to carry; listen to the server once the client is ready."""
        session = response.headers.get(SESSION)
        if session:
            self._session[SESSION] = session
        message = _parsed(line)
        if message.get("method") == "notifications/initialized" and not self._sse:
            threading.Thread(target=self._listen, args=(self._url,), daemon=True).start()

    def _listen(self, url: str) -> None:
        """What the server says by itself; most servers over streamable HTTP say nothing."""
        try:
            with self._open(url, "GET") as response:
                self._events(response)
            self._failure = "the stream of the server ended"
        except (OSError, ValueError) as error:
            self._failure = _reason(error)
        self._ready.set()
        # A server that never named an address cannot be asked; who asks is told why.
        if self._sse and self._endpoint is not None:
            self._answers.put(None)

    def _events(self, response: Any) -> None:
        kind, data = "message", []
        for raw in response:
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            if line.startswith("event:"):
                kind = line[6:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
            elif not line and data:
                self._event(kind, "\n".join(data))
                kind, data = "message", []

    def _event(self, kind: str, data: str) -> None:
        if kind == "endpoint":
            self._endpoint = urllib.parse.urljoin(self._url, data)
            self._ready.set()
        elif kind == "message":
            self._answer(data.encode())

    def _answer(self, body: bytes) -> None:
        """Hand a message on as one line; the version that both speak is part of every later request."""
        message = json.loads(body)
        for item in message if isinstance(message, list) else [message]:
            result = item.get("result") if isinstance(item, dict) else None
            if isinstance(result, dict) and isinstance(result.get("protocolVersion"), str):
                self._session[VERSION] = result["protocolVersion"]
            self._answers.put(json.dumps(item, ensure_ascii=False).encode("utf-8", "replace") + b"\n")

    def _refuse(self, line: bytes, reason: str) -> None:
        """Answer in the place of a server that did not."""
        message = _parsed(line)
        if "id" in message and "method" in message:
            error = {"code": NO_ANSWER, "message": reason}
            self._answers.put(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode() + b"\n")


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered with HTTP status {error.code}"
    reason = getattr(error, "reason", None) or error
    return f"the server cannot be reached: {reason}"
