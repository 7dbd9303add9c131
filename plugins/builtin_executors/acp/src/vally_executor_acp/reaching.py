"""Whether MCP servers elsewhere can be reached: agents go on without them and say nothing of it by this protocol."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

import anyio

from vally import ExecutorError, McpServer

_PORTS = {"http": 80, "https": 443}
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


async def check_reachable(servers: Iterable[McpServer], env: Mapping[str, str]) -> None:
    """Raise `ExecutorError` when nobody listens at the address of a server; a proxy in `env` hides that."""
    if any(value for name, value in env.items() if name.lower() in _PROXIES):
        return
    for server in servers:
        if server.type != "stdio" and server.url is not None:
            await _check(server, server.url)


async def _check(server: McpServer, url: str) -> None:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 80)
    try:
        with anyio.fail_after(server.timeout_s):
            stream = await anyio.connect_tcp(host, port)
    except TimeoutError:
        reason = f"{host}:{port} did not answer within {server.timeout_s:g}s"
    except OSError as error:
        reason = f"no connection to {host}:{port}: {_words(error)}"
    else:
        await stream.aclose()
        return
    raise ExecutorError.of_mcp_server(server.name, reason)


def _words(error: OSError) -> str:
    # anyio tells of all addresses that it tried, with the last failure as the cause.
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
    number = cause.errno or 0
    return os.strerror(number) if number > 0 else str(cause.strerror or cause)
