"""Messages over the standard streams of the agent's process, for the protocol library."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio

from vally import Process

CHUNK_BYTES = 65536
LONGEST_MESSAGE = 64 * 2**20

_GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


class ProcessTransport:
    """One JSON message per line.

    `on_message` gets each message before the library acts on it, and in order: an answer completes a request only
    after everything that was told before it. `on_noise` gets lines that are no messages.
    """

    def __init__(
        self, process: Process, on_message: Callable[[dict[str, Any]], None], on_noise: Callable[[str], None]
    ) -> None:
        self._process = process
        self._on_message = on_message
        self._on_noise = on_noise
        self._buffer = bytearray()
        self._sending = anyio.Lock()

    async def send(self, message: dict[str, Any]) -> None:
        """Write one message; raises `ConnectionError` when a request or notification cannot be read any more."""
        line = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            async with self._sending:
                await self._process.stdin.send(line)
        except _GONE as error:
            # That an answer is not heard any more is nobody's failure.
            if "method" in message:
                raise ConnectionError("the agent's input is closed") from error

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None at the end."""
        while True:
            line = await self._line()
            if line is None:
                return None
            message = _parsed(line)
            if message is not None:
                self._on_message(message)
                return message
            if text := line.decode("utf-8", "replace").strip():
                self._on_noise(text)

    async def close(self) -> None:
        """Close both streams."""
        for stream in (self._process.stdin, self._process.stdout):
            await stream.aclose()

    async def _line(self) -> bytes | None:
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > LONGEST_MESSAGE:
                # What comes next is its rest, and no message either.
                self._buffer.clear()
                self._on_noise(f"a message of more than {LONGEST_MESSAGE >> 20} MiB was left out")
                searched = 0
            try:
                self._buffer += await self._process.stdout.receive(CHUNK_BYTES)
            except _GONE:
                return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        # What a tool printed may be cut in the middle of a character; the message counts all the same.
        message = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not isinstance(message.get("id"), int | str | None):
        return None
    if "error" in message and not isinstance(message["error"], dict):
        message["error"] = {"message": str(message["error"])}
    return message
