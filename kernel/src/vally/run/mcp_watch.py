"""Noticing what becomes of MCP servers that an agent starts by itself: agents say little of it, and go on without them.

A shell stands before each server on this machine. It writes beside the trial's private files when the server was
started, said its first words, and ended.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from vally.errors import ExecutorError
from vally.model.evalspec import McpServer
from vally.run.racing import first_result

T = TypeVar("T")
STDERR_BYTES = 2048
POLL_S = 0.2
_CLOSED = frozenset({"0", "130", "137", "141", "143"})
"""Exit codes of servers that their agent has closed."""
_WATCHED = """\
cd "$1" 2>> "$2.stderr" || { echo 1 > "$2.exit"; exit 1; }
file=$2; shift 2
[ -e "$file.start" ] || : > "$file.start"
{ "$@" 2>> "$file.stderr"; echo $? > "$file.exit"; } | {
  while IFS= read -r line; do
    case $line in "{"*) : > "$file.up"; printf '%s\\n' "$line"; PATH=$PATH:/usr/bin:/bin; exec cat;; esac
    printf '%s\\n' "$line"
  done
}"""
"""What a server says first is the answer that it is ready; some print other lines before."""


@dataclass(frozen=True, slots=True)
class WatchedServer:
    """A server and the files that tell of it."""

    name: str
    base: Path
    timeout_s: float

    @property
    def is_up(self) -> bool:
        """Whether it has answered."""
        return self.base.with_suffix(".up").exists()

    @property
    def exit_code(self) -> str | None:
        """The exit code; None while it runs, or was not started."""
        try:
            return self.base.with_suffix(".exit").read_text().strip()
        except OSError:
            return None

    @property
    def end(self) -> str | None:
        """How it has ended, with its last words."""
        code = self.exit_code
        return None if code is None else f"it ended with exit code {code}{self._last_words()}"

    @property
    def silent_s(self) -> float | None:
        """How long it was started without having answered; None when it was not started or is up."""
        try:
            started = self.base.with_suffix(".start").stat().st_mtime
        except OSError:
            return None
        return None if self.is_up else max(0.0, time.time() - started)

    @property
    def failure(self) -> str | None:
        """Why it did not come up; None when it did, or may yet."""
        if self.is_up:
            return None
        silent = self.silent_s
        late = silent is not None and silent > self.timeout_s
        return self.end or (f"it did not come up within {self.timeout_s:g}s{self._last_words()}" if late else None)

    def _last_words(self) -> str:
        try:
            data = self.base.with_suffix(".stderr").read_bytes()
        except OSError:
            return ""
        words = data[-STDERR_BYTES:].decode("utf-8", "replace").strip()
        return f": {words}" if words else ""


class McpWatch:
    """Looks after the servers of one trial; blocks only where it says so. `scratch` is private to the trial."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._watched: list[WatchedServer] = []
        self._ended: list[str] = []
        self._told: set[str] = set()

    def put_before(self, server: McpServer, work_dir: Path) -> McpServer:
        """A server as the agent is to start it; as it is when it is elsewhere, or there is no shell."""
        if server.type != "stdio" or server.command is None or os.name == "nt":
            return server
        watched = WatchedServer(server.name, self._scratch / f"mcp-{len(self._watched)}", server.timeout_s)
        self._watched.append(watched)
        words = ("-c", _WATCHED, "sh", str(server.cwd or work_dir), str(watched.base), server.command, *server.args)
        return replace(server, command="/bin/sh", args=words)

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do some work of the agent. Raises the `ExecutorError` of a server that does not come up meanwhile."""
        ended: T | ExecutorError = await first_result(work, self.wait_failed)
        if isinstance(ended, ExecutorError):
            raise ended
        return ended

    async def wait_failed(self) -> ExecutorError:
        """Return the error of a server that does not come up; as long as there is none it waits."""
        while (error := await anyio.to_thread.run_sync(self._look)) is None:
            await (anyio.sleep(POLL_S) if self._watched else anyio.sleep_forever())
        return error

    def _look(self) -> ExecutorError | None:
        self._note_ended(_CLOSED)
        return self.failure()

    async def check_up(self, so_far: str) -> None:
        """Raise `ExecutorError` when a server was started and has not come up; `so_far` says for how long."""
        if await anyio.to_thread.run_sync(self._silent) is None:
            return
        # One that just ended needs a moment to say so, and one that just began to say its first words.
        await anyio.sleep(POLL_S)
        silent = await anyio.to_thread.run_sync(self._silent)
        if silent is not None:
            raise self.failure() or _error(silent, f"it did not come up {so_far}")

    def _silent(self) -> WatchedServer | None:
        return next((server for server in self._watched if server.silent_s is not None), None)

    def failure(self) -> ExecutorError | None:
        """The error of the first server that has not come up; None when all have, or may yet. Blocks."""
        for server in self._watched:
            if (reason := server.failure) is not None:
                return _error(server, reason)
        return None

    def ended(self, *, by_now: bool = True) -> list[str]:
        """What is to be said of servers that were up and have ended, each once. Blocks.

        Without `by_now` those count that were seen to fail while the agent worked: it closes all when it ends itself.
        """
        if by_now:
            self._note_ended(frozenset())
        lines, self._ended = self._ended, []
        return lines

    def _note_ended(self, closed: frozenset[str]) -> None:
        for server in self._watched:
            if server.name in self._told or not server.is_up or server.exit_code in {None, *closed}:
                continue
            self._told.add(server.name)
            self._ended.append(f"MCP server '{server.name}' ended while the agent worked: {server.end}")


def _error(server: WatchedServer, reason: str) -> ExecutorError:
    return ExecutorError.of_mcp_server(server.name, reason)
