"""What becomes of MCP servers that an agent starts by itself; the server here is a few lines of shell."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from vally import ExecutorError, McpServer, McpWatch

pytestmark = pytest.mark.anyio
UP = 'echo starting; read first; echo \'{"jsonrpc": "2.0"}\'; '
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def watch(tmp_path: Path) -> McpWatch:
    return McpWatch(tmp_path)


@pytest.fixture
def start(watch: McpWatch, tmp_path: Path) -> Iterator[Start]:
    """Starts a server as an agent does: the words that the watch put before it, with pipes."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(script: str, *, timeout_ms: int | None = None, say: bytes = b"hello\n") -> subprocess.Popen[bytes]:
        server = McpServer(name="s", type="stdio", command="/bin/sh", args=("-c", script), timeout_ms=timeout_ms)
        told = watch.put_before(server, tmp_path)
        assert told.command is not None
        process = subprocess.Popen([told.command, *told.args], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write(say)
        process.stdin.flush()
        started.append(process)
        return process

    yield begin
    for process in started:
        process.communicate(timeout=30)


async def told(watch: McpWatch) -> str:
    """The error that is raised while the agent works for ever."""
    with anyio.fail_after(30), pytest.raises(ExecutorError) as caught:
        await watch.run(anyio.sleep_forever)
    assert caught.value.code == "mcp-server-failed"
    return caught.value.message


async def test_a_server_that_answers_passes_everything_on(watch: McpWatch, start: Start) -> None:
    process = start(UP + 'read second; echo "$second"; exit 0', say=b"hello\nmore\n")
    out, _ = await anyio.to_thread.run_sync(process.communicate)
    assert out == b'starting\n{"jsonrpc": "2.0"}\nmore\n'
    await watch.check_up("before the agent was done")

    async def work() -> str:
        return "result"

    assert await watch.run(work) == "result"


async def test_one_that_ends_before_it_answers_is_an_error_with_its_last_words(watch: McpWatch, start: Start) -> None:
    start("echo no such database >&2; exit 3")
    assert await told(watch) == "MCP server 's' failed: it ended with exit code 3: no such database"


async def test_one_that_says_nothing_is_an_error_after_its_time(watch: McpWatch, start: Start) -> None:
    start("echo waiting >&2; read first; read second", timeout_ms=300)
    assert await told(watch) == "MCP server 's' failed: it did not come up within 0.3s: waiting"


async def test_an_agent_does_not_get_away_without_waiting(watch: McpWatch, start: Start, tmp_path: Path) -> None:
    start("read first; read second")
    with anyio.fail_after(30):
        while not list(tmp_path.glob("mcp-*.start")):
            await anyio.sleep(0.01)
    with pytest.raises(ExecutorError, match="it did not come up before the agent was done"):
        await watch.check_up("before the agent was done")


async def test_one_that_ends_later_is_told_once(watch: McpWatch, start: Start) -> None:
    process = start(UP + "echo out of memory >&2; exit 9")
    await anyio.to_thread.run_sync(process.communicate)
    assert watch.ended() == ["MCP server 's' ended while the agent worked: it ended with exit code 9: out of memory"]
    assert watch.ended() == []
    assert watch.failure() is None


async def test_one_that_the_agent_closed_is_not_told(watch: McpWatch, start: Start) -> None:
    process = start(UP + "exit 143")
    await anyio.to_thread.run_sync(process.communicate)
    await watch.run(lambda: anyio.sleep(0.5))
    assert watch.ended(by_now=False) == []


async def test_a_failure_of_the_work_is_raised_as_it_is(watch: McpWatch) -> None:
    async def broken() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await watch.run(broken)


def test_servers_elsewhere_are_left_as_they_are(watch: McpWatch, tmp_path: Path) -> None:
    server = McpServer(name="s", type="http", url="http://127.0.0.1:1/mcp")
    assert watch.put_before(server, tmp_path) is server
