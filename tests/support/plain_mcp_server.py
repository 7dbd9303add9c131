"""A small MCP server over standard streams with the tools `add` and `mul`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

INTEGER = {"type": "integer"}
SCHEMA = {
    "inputSchema": {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}, "required": ["a", "b"]},
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        server = {"name": "calc", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [{"name": name, "description": f"{name} two numbers", **SCHEMA} for name in ("add", "mul")]}
    if method == "tools/call":
        numbers = params["arguments"]
        text = f"The sum is {numbers['a'] + numbers['b']}, in {Path.cwd().name}."
        return {"content": [{"type": "text", "text": text}]}
    return {}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message["method"], message.get("params") or {})
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
