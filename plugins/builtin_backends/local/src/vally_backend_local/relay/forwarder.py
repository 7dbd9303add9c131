"""The way from a loopback port to a socket, for processes in a network of their own.

A program of its own, with the standard library only: `forwarder.py DIRECTORY PORT=NAME...` leads each port to the
socket of that name in the directory, writes the line `ready` when it listens, and runs until it is killed.
A launcher may also call `listen` and, in a process of its own, `serve`; the first takes little time.
"""

from __future__ import annotations

import os
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio

PIECE_BYTES = 65536


def listen(forwards: list[str]) -> list[tuple[socket.socket, str]]:
    """The listening sockets for words `PORT=NAME`, with the names; raises OSError and ValueError."""
    words = [word.partition("=") for word in forwards]
    return [(_listening(int(port)), name) for port, _, name in words]


def serve(directory: str, listening: list[tuple[socket.socket, str]]) -> None:
    """Forward until killed; the directory becomes the working one, because the path of a socket has little room."""
    import asyncio

    os.chdir(directory)
    asyncio.run(_serve(listening))


def _listening(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", port))
    made.listen(128)
    return made


async def _serve(listening: list[tuple[socket.socket, str]]) -> None:
    import asyncio

    servers = [await asyncio.start_server(_Forwarder(name).accept, sock=made) for made, name in listening]
    await asyncio.gather(*(server.serve_forever() for server in servers))


class _Forwarder:
    def __init__(self, name: str) -> None:
        self._name = name

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        import asyncio

        try:
            from_relay, to_relay = await asyncio.open_unix_connection(self._name)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(_copy(reader, to_relay, writer), _copy(from_relay, writer, to_relay))
        writer.close()
        to_relay.close()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter, back: asyncio.StreamWriter) -> None:
    """Copy until the end, and pass that on; what is broken on one side is broken on the other."""
    try:
        while True:
            piece = await source.read(PIECE_BYTES)
            if not piece:
                break
            target.write(piece)
            await target.drain()
        target.write_eof()
    except OSError:
        target.transport.abort()
        back.transport.abort()


def main() -> None:
    """Listen, tell so, and forward."""
    directory, *forwards = sys.argv[1:]
    listening = listen(forwards)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    serve(directory, listening)


if __name__ == "__main__":
    main()
