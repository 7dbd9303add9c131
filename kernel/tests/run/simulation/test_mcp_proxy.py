"""The proxy as a program: what it answers, what it hands through, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vally.run.simulation import mcp_proxy
from vally.run.simulation.mcp_proxy import same, tool_result, without_schemas

SERVER = """
import json, sys
for line in sys.stdin:
    try:
        message = json.loads(line)
    except ValueError:
        print("broken", line.strip(), flush=True)
        continue
    for item in message if isinstance(message, list) else [message]:
        if item.get("method") == "leave":
            sys.exit(5)
        print(json.dumps({"jsonrpc": "2.0", "id": item.get("id"), "result": {"real": item}}), flush=True)
"""
STUBBORN = (
    "import signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(60)\n"
)
OVERRIDES = [{"tool": "t", "arguments": {"n": 1}, "result": "canned"}, {"tool": "t", "arguments": {}, "error": "no"}]


class Running:
    """The proxy before a server, spoken to by lines."""

    def __init__(self, tmp_path: Path, source: str) -> None:
        self.log = tmp_path / "log.jsonl"
        config = tmp_path / "config.json"
        config.write_text(
            json.dumps(
                {
                    "server": "s",
                    "command": [sys.executable, "-c", source],
                    "cwd": str(tmp_path),
                    "overrides": OVERRIDES,
                    "log": str(self.log),
                }
            )
        )
        argv = [sys.executable, "-I", "-S", mcp_proxy.__file__, str(config)]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def send(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path, SERVER)
    yield running
    running.process.kill()
    running.process.communicate()


def call(number: int, arguments: Any = None, *, tool: str = "t") -> dict[str, Any]:
    given = {} if arguments is None else {"arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, **given}}


def test_canned_and_real_answers(proxy: Running) -> None:
    proxy.send(call(1, {"n": 1.0}))
    canned = proxy.receive()
    assert canned["id"] == 1
    assert canned["result"] == {
        "content": [{"type": "text", "text": "canned"}],
        "isError": False,
        "_meta": {"vally/simulated": True},
    }
    proxy.send(call(2))
    assert (proxy.receive()["result"]["isError"]) is True
    for message in (call(3, {"n": True}), call(4, {"n": 1}, tool="u"), {"jsonrpc": "2.0", "id": 5, "method": "ping"}):
        proxy.send(message)
        assert proxy.receive()["result"]["real"] == message
    logged = [json.loads(line) for line in proxy.log.read_text().splitlines()]
    assert logged == [
        {"server": "s", "tool": "t", "arguments": {"n": 1}},
        {"server": "s", "tool": "t", "arguments": {}},
    ]


def test_a_batch_is_divided(proxy: Running) -> None:
    proxy.send([call(1, {"n": 1}), call(2, {"n": 2})])
    answers = {item["id"]: item["result"] for item in (proxy.receive(), proxy.receive())}
    assert answers[1]["content"][0]["text"] == "canned"
    assert answers[2]["real"]["params"]["arguments"] == {"n": 2}


@pytest.mark.parametrize("line", [b"not json\n", b"42\n", b"\n"])
def test_what_is_no_message_is_the_servers_to_answer(line: bytes, tmp_path: Path) -> None:
    echo = "import sys\nfor line in sys.stdin: print(repr(line), flush=True)\n"
    running = Running(tmp_path, echo)
    running.send(line)
    assert running.process.stdout is not None
    assert running.process.stdout.readline() == repr(line.decode()).encode() + b"\n"
    running.process.communicate(timeout=30)
    assert running.process.returncode == 0


def test_it_ends_with_its_server(proxy: Running) -> None:
    proxy.send({"method": "leave"})
    proxy.process.communicate(timeout=30)
    assert proxy.process.returncode == 5


def test_a_client_that_leaves_ends_a_server_that_does_not(tmp_path: Path) -> None:
    running = Running(tmp_path, STUBBORN)
    assert running.process.stdout is not None
    assert running.process.stdout.readline() == b"up\n"
    running.process.communicate(timeout=30)
    assert running.process.returncode == 128 + signal.SIGKILL


def test_a_server_that_cannot_start(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"command": ["no-such-program"], "overrides": [], "server": "s", "log": "x"}))
    done = subprocess.run(
        [sys.executable, mcp_proxy.__file__, str(config)], input=b"", capture_output=True, timeout=30, check=False
    )
    assert done.returncode == 127
    assert b"cannot start 'no-such-program'" in done.stderr


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ("1", 1, False),
        (None, {}, False),
        ({"a": [{"b": 1.0}]}, {"a": [{"b": 1}]}, True),
    ],
)
def test_equal_as_json(one: Any, other: Any, equal: bool) -> None:
    assert same(one, other) is equal


def test_the_shapes_of_results() -> None:
    assert tool_result({"result": {"a": 1}})["structuredContent"] == {"a": 1}
    assert tool_result({"result": [1, "é"]})["content"] == [{"type": "text", "text": '[1, "é"]'}]
    assert tool_result({"result": None})["content"][0]["text"] == "null"
    whole = {"content": [{"type": "image", "data": "x"}], "_meta": {"k": 1}}
    assert tool_result({"result": whole}) == {**whole, "_meta": {"k": 1, "vally/simulated": True}}


def test_schemas_of_overridden_tools_are_taken_out_of_lists() -> None:
    tools = [{"name": name, "outputSchema": {}} for name in ("t", "u")]
    line = json.dumps({"id": 1, "result": {"tools": tools}}).encode() + b"\n"
    assert json.loads(without_schemas(line, {"t"}))["result"]["tools"] == [{"name": "t"}, tools[1]]
    other = b'{"id": 1, "result": {"content": "outputSchema"}}\n'
    assert without_schemas(other, {"t"}) == other
