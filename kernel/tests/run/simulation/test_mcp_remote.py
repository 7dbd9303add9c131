"""The proxy before servers that are reached by an address: streamable HTTP, and the older stream with POST."""

from __future__ import annotations

import json
import queue
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from vally import McpServer, wrap_servers
from vally.run.simulation import mcp_proxy
from vally.testing import stimulus

KEY = {"X-Key": "k-1"}


class Server(ThreadingHTTPServer):
    """Remembers what it was asked: method, path, headers of the protocol, message."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []
        self.stream: queue.Queue[str | None] = queue.Queue()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def note(self, message: Any = None) -> None:
        names = ("X-Key", "Mcp-Session-Id", "MCP-Protocol-Version")
        headers = {name: value for name in names if (value := self.headers.get(name))}
        self.server.asked.append((self.command, self.path, headers, message))

    def reply(self, status: int, body: str = "", kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self) -> None:
        self.note()
        if self.path != "/sse":
            self.reply(405)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b": hello\n\nevent: endpoint\ndata: /messages?session=1\n\n")
        while (text := self.server.stream.get()) is not None:
            self.wfile.write(f"event: message\r\ndata: {text}\r\n\r\n".encode())
            self.wfile.flush()

    def do_DELETE(self) -> None:
        self.note()
        self.reply(200)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.note(message)
        if self.path == "/broken":
            self.reply(500, "<html>")
            return
        if "id" not in message:
            self.reply(202, "Accepted", "text/plain")
            return
        answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": self.result(message)})
        if self.path.startswith("/messages"):
            self.server.stream.put(answer)
            self.reply(202, "Accepted", "text/plain")
        elif message["method"] == "tools/call":
            note = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress"})
            self.reply(200, f"data: {note}\n\nevent: message\ndata: {answer}\n\n", "text/event-stream")
        else:
            self.reply(200, answer, Mcp_Session_Id="s-1")

    def result(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["method"] == "initialize":
            return {"protocolVersion": "2025-06-18", "capabilities": {}}
        return {"content": [{"type": "text", "text": "real"}]}


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.stream.put(None)
    made.shutdown()
    made.server_close()
    thread.join()


class Client:
    """Speaks to the proxy that was put before a server."""

    def __init__(self, tmp_path: Path, kind: Any, url: str) -> None:
        far = McpServer(name="far", type=kind, url=url, headers=KEY)
        given = stimulus(simulation={"tool_overrides": [{"tool": "t", "arguments": {}, "result": "canned"}]})
        wrapped = wrap_servers({"far": far}, given, tmp_path, lambda _: None)["far"]
        assert (wrapped.type, wrapped.url, dict(wrapped.headers)) == ("stdio", None, {})
        assert wrapped.command is not None
        self.process = subprocess.Popen(
            [wrapped.command, *wrapped.args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._number = 0

    def tell(self, method: str, **fields: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, **fields}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        self.tell(method, id=self._number, params=params)
        assert self.process.stdout is not None
        while True:
            message: dict[str, Any] = json.loads(self.process.stdout.readline())
            if message.get("id") == self._number:
                return message

    def close(self) -> int:
        self.process.communicate(timeout=30)
        return self.process.returncode


def conversation(client: Client) -> None:
    client.ask("initialize", protocolVersion="2025-06-18")
    client.tell("notifications/initialized")
    canned = client.ask("tools/call", name="t")
    assert canned["result"]["content"][0]["text"] == "canned"
    real = client.ask("tools/call", name="t", arguments={"other": 1})
    assert real["result"]["content"][0]["text"] == "real"


def test_streamable_http(tmp_path: Path, server: Server) -> None:
    client = Client(tmp_path, "http", f"{server.url}/mcp")
    conversation(client)
    assert client.close() == 0
    posted = [(headers, message["method"]) for method, _, headers, message in server.asked if method == "POST"]
    assert posted[0] == (KEY, "initialize")
    later = {**KEY, "Mcp-Session-Id": "s-1", "MCP-Protocol-Version": "2025-06-18"}
    assert sorted(posted[1:], key=lambda item: item[1]) == [(later, "notifications/initialized"), (later, "tools/call")]
    assert "DELETE" in [method for method, *_ in server.asked]
    config = tmp_path / "simulation" / "server-0.json"
    assert stat.S_IMODE(config.stat().st_mode) == 0o600


def test_the_stream_with_post(tmp_path: Path, server: Server) -> None:
    client = Client(tmp_path, "sse", f"{server.url}/sse")
    conversation(client)
    assert client.close() == 0
    assert {path for method, path, *_ in server.asked if method == "POST"} == {"/messages?session=1"}


@pytest.mark.parametrize(
    ("kind", "path", "reason"),
    [
        ("http", "/broken", "the server answered with HTTP status 500"),
        ("sse", "/mcp", "the server answered with HTTP status 405"),
    ],
)
def test_a_server_that_refuses(kind: str, path: str, reason: str, tmp_path: Path, server: Server) -> None:
    client = Client(tmp_path, kind, f"{server.url}{path}")
    answer = client.ask("initialize")
    assert reason in answer["error"]["message"]
    client.close()


def test_an_address_where_nobody_is(tmp_path: Path) -> None:
    client = Client(tmp_path, "http", "http://127.0.0.1:9/mcp")
    assert "the server cannot be reached" in client.ask("initialize")["error"]["message"]
    assert client.close() == 0


def test_another_scheme_is_no_address(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("{}")
    client = Client(tmp_path, "http", secret.as_uri())
    assert "is no http address" in client.ask("initialize")["error"]["message"]
    client.close()


def test_the_program_needs_nothing_but_the_standard_library() -> None:
    source = Path(mcp_proxy.__file__)
    code = f"import sys; sys.path.insert(0, {str(source.parent)!r}); import mcp_proxy, mcp_remote"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, timeout=30)
