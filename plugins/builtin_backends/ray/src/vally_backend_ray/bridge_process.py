"""The bridge as a child of vally: started, connected, and ended with everything that it started."""

from __future__ import annotations

import asyncio
import re
import secrets
import socket
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from vally import BackendError, Guardian, LocalProcessRunner
from vally_backend_local import remove_tree, temporary_directory
from vally_backend_ray.codes import UNAVAILABLE
from vally_backend_ray.link import Link

CONNECT_S = 60.0
CLOSE_S = 45.0
LONGEST_DIRECTORY = 30
"""Sockets of Ray lie some 70 characters below its directory, and their paths may have about 100."""

TAIL_BYTES = 4096
_TELLING = re.compile(r"error|fatal|exception|fail|terminat", re.IGNORECASE)
"""What a line has that tells why a process ended; Ray says much else."""

_UNAUTHENTICATED = b"InvalidAuthToken"
"""What the library of Ray prints when a cluster does not let it in; its driver hears only that there is no answer."""


class BridgeProcess:
    """Runs the bridge; `directory` is private to the run and goes at its end, also when vally is killed."""

    def __init__(self, process_env: Mapping[str, str], on_note: Callable[[str, Any], None], *, local: bool) -> None:
        self._on_note = on_note
        self.directory = _make_directory(temporary_directory(process_env))
        self._guardian = Guardian()
        self._runner = LocalProcessRunner(
            f"ray-{uuid.uuid4()}",
            {**process_env, **_ray_settings(local)},
            cwd=self.directory,
            owned_dirs=(self.directory,),
            removable_dirs=(self.directory,),
            guardian=self._guardian,
        )
        self.unauthenticated = asyncio.Event()
        """Set when the cluster does not accept the token, or none. Ray itself asks again for 20 seconds."""
        self._tail = bytearray()
        self._readers: list[asyncio.Task[None]] = []
        self._link: Link | None = None

    @property
    def link(self) -> Link:
        """The connection to the bridge."""
        assert self._link is not None
        return self._link

    async def open(self) -> None:
        """Start the bridge and wait until it is connected. Raises `BackendError`."""
        path = self.directory / "link"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(path))
            listener.listen(1)
            listener.setblocking(False)
            process = await self._runner.start([sys.executable, "-m", "vally_backend_ray.bridge", str(path)])
            await process.stdin.aclose()
            self._readers = [asyncio.create_task(self._drain(stream)) for stream in (process.stdout, process.stderr)]
            connection = await self._accepted(listener, process)
        self._link = Link(connection, self._on_note, self._explain)

    async def _accepted(self, listener: socket.socket, process: Any) -> socket.socket:
        loop = asyncio.get_running_loop()
        ended = asyncio.create_task(process.wait())
        accepting = asyncio.create_task(loop.sock_accept(listener))
        try:
            await asyncio.wait([ended, accepting], timeout=CONNECT_S, return_when=asyncio.FIRST_COMPLETED)
            if accepting.done() and accepting.exception() is None:
                connection, _ = accepting.result()
                connection.setblocking(True)
                return connection
        finally:
            for task in (ended, accepting):
                task.cancel()
                with suppress(asyncio.CancelledError, OSError):
                    await task
        await asyncio.sleep(0.2)
        raise BackendError(self._explain(), code=UNAVAILABLE)

    async def _drain(self, stream: Any) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                self._tail += await stream.receive()
                if _UNAUTHENTICATED in self._tail:
                    self.unauthenticated.set()
                del self._tail[:-TAIL_BYTES]

    def _explain(self) -> str:
        """Why the bridge is gone, as far as its last words tell."""
        lines = [line.strip() for line in self._tail.decode(errors="replace").splitlines() if _TELLING.search(line)]
        return ": ".join(["the process that talks to Ray ended", *(line[:500] for line in lines[-1:])])

    async def close(self) -> list[str]:
        """End the bridge, its cluster and the directory; returns warnings."""
        warnings: list[str] = []
        if self._link is not None:
            try:
                with anyio.fail_after(CLOSE_S):
                    warnings += await self._link.call("close")
            except TimeoutError:
                warnings.append(f"the Ray workers did not end within {CLOSE_S:g} s")
            except BackendError as error:
                warnings.append(error.message)
            await anyio.to_thread.run_sync(self._link.close)
        await self._runner.kill_all()
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        try:
            await anyio.to_thread.run_sync(remove_tree, self.directory)
        except OSError as error:
            warnings.append(f"'{self.directory}' could not be removed: {error}")
        self._runner.close()
        await anyio.to_thread.run_sync(self._guardian.shutdown)
        return warnings


def _make_directory(temporary: Path) -> Path:
    short = temporary if len(str(temporary)) <= LONGEST_DIRECTORY else Path("/tmp")
    return Path(tempfile.mkdtemp(prefix="vr-", dir=short if short.is_dir() else temporary))


def _ray_settings(local: bool) -> dict[str, str]:
    """Variables by which Ray is quiet and, as a cluster of this machine, neither seen nor used by anybody else."""
    settings = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    if local:
        settings |= {
            # Its name is older than its meaning: with 0 all servers listen on the loopback interface only.
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_prestart_worker_first_driver": "0",
            # A worker has a guardian, which must outlive it to end what the worker's children have started.
            "RAY_kill_child_processes_on_worker_exit": "0",
        }
    return settings
