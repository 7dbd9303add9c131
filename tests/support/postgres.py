"""A real PostgreSQL server for tests, on loopback, ended with the process that asked for it, however that ends."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


def programs() -> Path | None:
    """The directory with PostgreSQL's programs; Debian keeps them out of the path."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    return versions[-1].parent if versions else None


def _owner() -> str | None:
    """The server refuses to run as root, so root lets another user run it."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server() -> Iterator[str]:
    """Start a server with an empty cluster and yield its URL; raises `FileNotFoundError` when none is installed."""
    directory = programs()
    if directory is None:
        raise FileNotFoundError("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    owner = _owner()
    with tempfile.TemporaryDirectory(prefix="vally-postgres-") as temporary:
        data, log = Path(temporary) / "data", Path(temporary) / "log"
        if owner is not None:
            shutil.chown(temporary, owner)
        _run(
            owner,
            directory / "initdb",
            "-D",
            data,
            "-A",
            "trust",
            "-U",
            "vally",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "-N",
        )
        port = _free_port()
        settings = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={temporary} -c fsync=off"
        _run(owner, directory / "pg_ctl", "-D", data, "-l", log, "-w", "-o", settings, "start")
        stop = [directory / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"]
        try:
            with _ended_without_us(owner, stop, temporary):
                yield f"postgresql+psycopg://vally@127.0.0.1:{port}"
        finally:
            _run(owner, *stop)


@contextmanager
def _ended_without_us(owner: str | None, stop: Sequence[object], directory: str) -> Iterator[None]:
    """Have the server stopped and its files removed when this process ends without doing so, as when it is killed."""
    script = 'cat; directory=$1; shift; "$@"; rm -rf "$directory"'
    words = ["sh", "-c", script, "sh", directory, *map(str, stop)]
    # The pipe ends with this process; the signals that a terminal sends to its group do not get there.
    watcher = _started(owner, words, stdin=subprocess.PIPE)
    try:
        yield
    finally:
        os.killpg(watcher.pid, signal.SIGKILL)
        watcher.communicate()


def _run(owner: str | None, *argv: object) -> None:
    words = [str(word) for word in argv]
    code = _started(owner, words).wait()
    assert code == 0, f"{words[0]} ended with {code}"


def _started(owner: str | None, words: Sequence[str], *, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    # A daemon keeps its streams, so they must not be pipes that somebody waits for.
    quiet = subprocess.DEVNULL
    return subprocess.Popen(words, user=owner, cwd="/", stdin=stdin, stdout=quiet, stderr=quiet, start_new_session=True)
