"""MCP servers of a trial; with the real runtime."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from vally import ExecutorError, McpServer
from vally.testing import MockLlm

pytestmark = [pytest.mark.heavy, pytest.mark.anyio]


def data(trajectory: Any, kind: str) -> list[dict[str, Any]]:
    return [event.data for event in trajectory.events if event.type == kind]


SERVER = """
import json, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    method = asked.get("method")
    if method == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "calc", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
        result = {"tools": [{"name": "add", "description": "adds", "inputSchema": schema}]}
    elif method == "tools/call":
        sums = asked["params"]["arguments"]
        result = {"content": [{"type": "text", "text": str(sums["a"] + sums["b"])}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
    if method == "tools/call" and sys.argv[1:] == ["once"]:
        sys.exit(3)
"""


def server(name: str, *words: str, **fields: Any) -> McpServer:
    return McpServer(name=name, type="stdio", command=words[0], args=words[1:], **fields)


@pytest.fixture
def calculator(tmp_path: Path) -> Path:
    path = tmp_path / "calculator.py"
    path.write_text(SERVER)
    return path


async def test_a_tool_of_an_mcp_server(run: Any, calculator: Path) -> None:
    servers = {"calc": server("calc", sys.executable, "-IS", str(calculator), cwd=str(run.work))}
    trajectory = await run('x\n!tool calc-add {"a": 2, "b": 40}\n!say y', mcp_servers=servers)
    (call,) = data(trajectory, "tool_call")
    assert (call["toolName"], call["mcpServer"]) == ("calc-add", "calc")
    (result,) = data(trajectory, "tool_result")
    assert (result["success"], result["result"]) == (True, "42")
    assert trajectory.metadata["mcpServers"] == ["calc"]


class RemoteCalculator(BaseHTTPRequestHandler):
    """An MCP server behind HTTP that wants a key."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["x-key"] != "secret-key-1":
            self._answer(401, {})
        elif "id" not in asked:
            self._answer(202, None)
        else:
            self._answer(200, {"jsonrpc": "2.0", "id": asked["id"], "result": self._result(asked)})

    def do_GET(self) -> None:
        self._answer(405, None)

    do_DELETE = do_GET

    def _result(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["method"] == "initialize":
            version = asked["params"]["protocolVersion"]
            facts = {"name": "remote", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": facts}
        if asked["method"] == "tools/list":
            return {"tools": [{"name": "one", "description": "says one", "inputSchema": {"type": "object"}}]}
        return {"content": [{"type": "text", "text": "1"}]}

    def _answer(self, status: int, body: Any) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        return None


@pytest.fixture
def remote() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), RemoteCalculator)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_a_tool_of_a_remote_mcp_server(run: Any, remote: str) -> None:
    def servers(key: str) -> dict[str, McpServer]:
        return {"far": McpServer(name="far", type="http", url=remote, headers={"X-Key": key}, timeout_ms=20_000)}

    trajectory = await run("x\n!tool far-one {}\n!say y", mcp_servers=servers("secret-key-1"))
    (result,) = data(trajectory, "tool_result")
    assert (result["success"], result["result"]) == (True, "1")
    assert "secret-key-1" not in trajectory.model_dump_json()
    with pytest.raises(ExecutorError, match="MCP server 'far' failed") as caught:
        await run("x", mcp_servers=servers("wrong-key"))
    assert caught.value.code == "mcp-server-failed"
    assert "wrong-key" not in caught.value.message


async def test_an_mcp_server_that_fails_is_an_error(run: Any, calculator: Path, llm: MockLlm) -> None:
    servers = {
        "calc": server("calc", sys.executable, "-IS", str(calculator)),
        "bad": server("bad", sys.executable, "-c", "import sys; sys.exit('out of luck')"),
    }
    with pytest.raises(ExecutorError, match=r"MCP server 'bad' failed: .*exit code 1.*out of luck") as caught:
        await run("x", mcp_servers=servers)
    assert (caught.value.code, caught.value.retryable) == ("mcp-server-failed", False)
    assert caught.value.trajectory is not None
    assert not llm.requests


async def test_an_mcp_server_that_does_not_exist_is_an_error(run: Any) -> None:
    with pytest.raises(ExecutorError, match=r"MCP server 'gone' failed: .*No such file") as caught:
        await run("x", mcp_servers={"gone": server("gone", "/nonexistent/program")})
    assert caught.value.code == "mcp-server-failed"


async def test_an_mcp_server_that_hangs_is_an_error(run: Any) -> None:
    words = (sys.executable, "-c", "import time; time.sleep(600)")
    with pytest.raises(ExecutorError, match=r"MCP server 'slow' failed: it did not come up within 0\.5s") as caught:
        await run("x", mcp_servers={"slow": server("slow", *words, timeout_ms=500)})
    assert caught.value.code == "mcp-server-failed"


async def test_an_mcp_server_that_ends_later_is_a_warning(run: Any, calculator: Path) -> None:
    warnings: list[str] = []
    servers = {"calc": server("calc", sys.executable, "-IS", str(calculator), "once")}
    script = 'x\n!tool calc-add {"a": 2, "b": 40}\n!tool bash {"command": "sleep 1", "description": "d"}\n!say y'
    trajectory = await run(script, mcp_servers=servers, warn=warnings.append)
    assert trajectory.end_reason == "completed"
    assert data(trajectory, "tool_result")[0]["result"] == "42"
    (warning,) = warnings
    assert warning.startswith("MCP server 'calc' ended while the agent worked")
