"""Starting a forwarder where an agent runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from importlib.resources import files
from typing import Literal, get_args

from vally_backend_local.relay.relays import Forward

ForwarderKind = Literal["python", "node", "socat"]
FORWARDERS: tuple[ForwarderKind, ...] = get_args(ForwarderKind)
"""Programs that can forward; `python` is Python 3.8 or later."""
_SOURCES = {"python": "forwarder.py", "node": "forwarder.cjs"}
_SOCAT = "socat TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork,nodelay UNIX-CONNECT:{name}"


def forwarder_source(kind: ForwarderKind) -> str:
    """The text of the program that a Python or a Node can run; see its first lines for its arguments."""
    return files("vally_backend_local.relay").joinpath(_SOURCES[kind]).read_text(encoding="utf-8")


def forwarder_words(forwards: Sequence[Forward]) -> list[str]:
    """The arguments of a forwarder: the directory of the sockets, then `PORT=NAME` for each of them."""
    (directory,) = {str(forward.socket.parent) for forward in forwards}
    return [directory, *(f"{forward.port}={forward.socket.name}" for forward in forwards)]


def forwarder_command(kind: ForwarderKind, program: str, forwards: Sequence[Forward]) -> list[str]:
    """A command that forwards until it is killed, with `program` as the interpreter or as `socat`.

    It needs no file where it runs but the sockets, which lie in one directory. Python and Node write the line `ready`
    to their output as soon as they listen.
    """
    words = forwarder_words(forwards)
    if kind == "python":
        return [program, "-I", "-S", "-c", forwarder_source(kind), *words]
    if kind == "node":
        return [program, "-e", forwarder_source(kind), "--", *words]
    listening = [_SOCAT.format(port=forward.port, name=forward.socket.name) for forward in forwards]
    lines = [f"cd {shlex.quote(words[0])} || exit 1"]
    lines += [line.replace("socat", shlex.quote(program), 1) + " &" for line in listening]
    return ["/bin/sh", "-c", "\n".join([*lines, "wait"])]
