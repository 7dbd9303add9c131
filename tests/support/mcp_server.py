"""An MCP server over standard streams: `python mcp_server.py LOG`; every call it gets becomes a line of LOG."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

TOOLS = ("add", "echo", "exit", "environment")


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "t", "version": "1"},
        }
    if method == "tools/list":
        return {
            "tools": [
                {"name": name, "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}} for name in TOOLS
            ]
        }
    if method != "tools/call":
        return {}
    with Path(sys.argv[1]).open("a", encoding="utf-8") as log:
        log.write(json.dumps(params) + "\n")
    arguments = params.get("arguments") or {}
    if params["name"] == "exit":
        os._exit(7)
    if params["name"] == "environment":
        text = f"{os.environ.get('WORD')} {Path.cwd().name}"
    else:
        text = str(arguments["a"] + arguments["b"]) if params["name"] == "add" else json.dumps(arguments)
    return {"content": [{"type": "text", "text": text}]}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            response = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}
            sys.stdout.write(json.dumps(response) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
