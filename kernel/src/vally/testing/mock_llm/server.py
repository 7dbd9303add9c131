"""The server: a socket, a thread, and what all connections share."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from vally.testing.mock_llm.answering import FaultCounter
from vally.testing.mock_llm.handler import MockHandler
from vally.testing.mock_llm.log import MockRequest, RequestLog


class MockServer(socketserver.ThreadingTCPServer):
    """Serves each connection in a thread; closing ends open connections and waits for the threads."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], values: Mapping[str, str], log: RequestLog, key: str | None) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self.values = values
        self.log = log
        self.api_key = key
        self.faults = FaultCounter()
        self.resetting: set[Any] = set()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._open: dict[Any, threading.Thread] = {}
        super().__init__(address, MockHandler)

    def pause(self, seconds: float) -> bool:
        """Wait; False when the server stops meanwhile."""
        return not self._stopping.wait(seconds)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own."""
        thread = threading.Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        with self._lock:
            self._open[request] = thread
        thread.start()

    def shutdown_request(self, request: Any) -> None:
        """Close a connection; one to be reset must not be ended politely before."""
        if request in self.resetting:
            self.resetting.discard(request)
            request.close()
        else:
            super().shutdown_request(request)
        with self._lock:
            self._open.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Be silent about clients that went away, and about connections that the server itself ended."""
        if not self._stopping.is_set() and not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def stop(self) -> None:
        """Accept nothing more, end what is going on, and wait for it."""
        self._stopping.set()
        self.shutdown()
        with self._lock:
            connections = dict(self._open)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in connections.values():
            thread.join(10)
        self.server_close()


class MockLlm:
    """A scripted model server, running inside `with`; it needs no model, no key and no network but its own address.

    It speaks chat completions, responses, messages and Gemini, streamed and plain. The script of an answer is the
    lines of the prompt that start with `!`. `values` fills `${NAME}` in scripts. With `log` requests go to that file
    as JSON lines instead of into `requests`. With `api_key` a request without this key gets 401. Port 0 takes a free
    one. Entering raises `OSError` when the address cannot be listened on.
    """

    def __init__(
        self,
        *,
        values: Mapping[str, str] | None = None,
        log: Path | None = None,
        api_key: str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._address = (host, port)
        self._values = dict(values or {})
        self._log = RequestLog(log)
        self._api_key = api_key
        self._server: MockServer | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> MockLlm:
        self._server = MockServer(self._address, self._values, self._log, self._api_key)
        # A short poll lets it stop quickly.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.stop()
        self._thread.join(10)
        self._server = None

    @property
    def url(self) -> str:
        """The base URL, without a final slash; every path below it that ends as a dialect's does is served."""
        if self._server is None:
            raise RuntimeError("the server runs inside 'with' only")
        host, port = self._server.server_address[:2]
        name = str(host)
        return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"

    @property
    def requests(self) -> tuple[MockRequest, ...]:
        """What was asked so far; empty when a log file was given."""
        return self._log.requests
