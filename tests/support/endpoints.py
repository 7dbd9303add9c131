"""An endpoint of a model with fixed answers, for what the mock model server does not say."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@contextmanager
def nobody() -> Iterator[str]:
    """The URL of a port that refuses connections, and that no other server can get meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


class FixedEndpoint(ThreadingHTTPServer):
    """Gives its `answers` in order, the last one for ever; remembers requests with all their headers.

    An answer is a status, a content type, a body and further headers. Serves inside `with`.
    """

    daemon_threads = False
    block_on_close = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[tuple[int, str, str, dict[str, str]]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.bodies: list[Any] = []
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,))

    def __enter__(self) -> FixedEndpoint:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def give(self, body: object, *, status: int = 200, **headers: str) -> None:
        """Add an answer in JSON."""
        self.give_text(json.dumps(body), status=status, **headers)

    def give_text(
        self, body: str, *, status: int = 200, content_type: str = "application/json", **headers: str
    ) -> None:
        """Add an answer that may be no JSON."""
        self.answers.append((status, content_type, body, headers))


class _Handler(BaseHTTPRequestHandler):
    server: FixedEndpoint

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.server.paths.append(self.path)
        self.server.bodies.append(json.loads(data))
        answers = self.server.answers
        status, content_type, body, headers = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if 300 <= status < 400:
            self.send_header("Location", f"{self.server.url}/elsewhere")
        data = body.encode("utf-8", "surrogateescape")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
