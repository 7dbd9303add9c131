"""A stand-alone program before an MCP server: answers some tool calls itself and hands everything else through.

`python mcp_proxy.py CONFIG`, where CONFIG is a JSON file: `command` (list), `cwd`, `server` (its name), `overrides`
(list of `tool`, `arguments`, and `result` or `error`), `log` (a file that gets one JSON line per canned answer); for a
server behind an address `url`, `headers` and `type` instead of `command` and `cwd`. Speaks JSON-RPC by lines on its
standard streams. It needs the standard library only.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

GRACE_S = 2.0
"""How long the server may take to end once its input is closed."""
MARK = {"vally/simulated": True}


class LocalServer:
    """The server as a child process; raises `OSError` when it cannot be started."""

    def __init__(self, command: list[str], cwd: str | None) -> None:
        self._process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def lines(self) -> Iterator[bytes]:
        """What it says."""
        assert self._process.stdout is not None
        return iter(self._process.stdout)

    def send(self, line: bytes) -> bool:
        """Send one line; returns whether it is there to get more."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close its input, and end it when it does not end by itself."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        deadline = time.monotonic() + GRACE_S
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        if self._process.poll() is None:
            self._process.kill()

    def wait(self) -> int:
        """Its exit code."""
        return self._process.wait()

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.terminate()


class Proxy:
    """The two directions; answers of both go to one stdout, a line at a time."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._server = _server(config)

    def run(self) -> int:
        """Work until the client or the server leaves; returns the exit code of the server."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._server.terminate())
        threading.Thread(target=self._from_client, daemon=True).start()
        names = {override["tool"] for override in self._config["overrides"]}
        for line in self._server.lines():
            self._answer(without_schemas(line, names) if b'"outputSchema"' in line else line)
        code: int = self._server.wait()
        return code

    def _from_client(self) -> None:
        for line in sys.stdin.buffer:
            rest = self._without_canned(line)
            if rest and not self._server.send(rest):
                break
        self._server.close()

    def _without_canned(self, line: bytes) -> bytes:
        """What of a line the server is to get."""
        try:
            message = json.loads(line)
        except ValueError:
            return line
        if isinstance(message, dict):
            return b"" if self._is_answered(message) else line
        if isinstance(message, list):
            left = [item for item in message if not (isinstance(item, dict) and self._is_answered(item))]
            if len(left) != len(message):
                return json.dumps(left).encode() + b"\n" if left else b""
        return line

    def _is_answered(self, message: dict[str, Any]) -> bool:
        """Answer a message when it is a call that an override fits."""
        params = message.get("params")
        if message.get("method") != "tools/call" or "id" not in message or not isinstance(params, dict):
            return False
        tool, arguments = params.get("name"), params.get("arguments")
        arguments = {} if arguments is None else arguments
        for override in self._config["overrides"]:
            if override["tool"] == tool and same(override["arguments"], arguments):
                self._log(tool, arguments)
                response = {"jsonrpc": "2.0", "id": message["id"], "result": tool_result(override)}
                self._answer(json.dumps(response, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
                return True
        return False

    def _log(self, tool: object, arguments: object) -> None:
        # Before the answer: what an agent was told must never be unmarked.
        entry = {"server": self._config["server"], "tool": tool, "arguments": arguments}
        with open(self._config["log"], "ab") as file:  # noqa: PTH123  # pathlib would double the start-up time
            file.write(json.dumps(entry).encode() + b"\n")

    def _answer(self, line: bytes) -> None:
        try:
            with self._lock:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
        except OSError:
            # The client is gone.
            self._server.terminate()


def _server(config: dict[str, Any]) -> Any:
    if "url" not in config:
        return LocalServer(config["command"], config.get("cwd"))
    # Nothing beside this file can be imported by a program that runs isolated.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    remote = importlib.import_module("mcp_remote")
    return remote.RemoteServer(config["url"], config["headers"], sse=config["type"] == "sse")


def without_schemas(line: bytes, tools: set[str]) -> bytes:
    """A list of tools without the output schemas of some: clients refuse answers that do not keep them."""
    try:
        message = json.loads(line)
        listed = message["result"]["tools"]
        for tool in listed:
            if tool["name"] in tools:
                tool.pop("outputSchema", None)
    except (ValueError, KeyError, TypeError):
        return line
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON: `1` is `1.0` but not `true`, and the order of keys does not count."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def tool_result(override: dict[str, Any]) -> dict[str, Any]:
    """The answer to `tools/call`: a result that has the shape of one is taken as it is, anything else becomes text."""
    if "error" in override:
        return {"content": [_text(override["error"])], "isError": True, "_meta": MARK}
    result = override["result"]
    if _is_tool_result(result):
        return {**result, "_meta": {**(result.get("_meta") or {}), **MARK}}
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    structured = {"structuredContent": result} if isinstance(result, dict) else {}
    return {"content": [_text(text)], **structured, "isError": False, "_meta": MARK}


def _is_tool_result(value: Any) -> bool:
    content = value.get("content") if isinstance(value, dict) else None
    return isinstance(content, list) and all(isinstance(item, dict) and "type" in item for item in content)


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def main() -> None:
    """Run as the program."""
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123  # see above
        config = json.load(file)
    try:
        proxy = Proxy(config)
    except OSError as error:
        sys.stderr.write(f"cannot start '{config['command'][0]}': {error.strerror or error}\n")
        sys.stderr.flush()
        os._exit(127)
    code = proxy.run()
    sys.stdout.flush()
    # The thread that reads the client may wait for it for ever.
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
