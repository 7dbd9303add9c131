"""How much a trial writes, and how much its file system has left."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

WALK_EVERY_S = 10.0
WALK_AT_MOST_S = 1.0
SAY_EVERY_S = 60.0
LOOK_EVERY_S = 5.0
_BLOCK_BYTES = 512


def used_bytes(roots: Sequence[Path], seconds: float = WALK_AT_MOST_S) -> int:
    """Return the bytes that files below the roots take; the walk ends early after `seconds`."""
    until = time.monotonic() + seconds
    pending = [str(root) for root in roots]
    total = 0
    while pending and time.monotonic() < until:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        total += _allocated(entry.stat(follow_symlinks=False))
        except OSError:
            # Gone meanwhile, or closed to us: what cannot be seen is not counted.
            continue
    return total


@asynccontextmanager
async def watched_disk(roots: Sequence[Path], limit: int, on_full: Callable[[], None]) -> AsyncIterator[None]:
    """Look now and then, while the body runs, whether files below the roots take more than `limit` bytes."""
    loop = asyncio.get_running_loop()
    walks: list[asyncio.Task[None]] = []

    async def walk() -> None:
        while await anyio.to_thread.run_sync(used_bytes, roots, abandon_on_cancel=True) <= limit:
            await anyio.sleep(WALK_EVERY_S)
        on_full()

    # Most trials are over before the first look, and a timer costs less than a task.
    timer = loop.call_later(WALK_EVERY_S, lambda: walks.append(loop.create_task(walk())))
    try:
        yield
    finally:
        timer.cancel()
        for task in walks:
            task.cancel()
            await asyncio.wait([task])


def _allocated(found: os.stat_result) -> int:
    blocks: int | None = getattr(found, "st_blocks", None)
    return found.st_size if blocks is None else blocks * _BLOCK_BYTES


class FreeSpace:
    """Holds trials back while a file system is nearly full."""

    def __init__(self, minimum: int, say: Callable[[str], None], *, look_every_s: float = LOOK_EVERY_S) -> None:
        self._minimum = minimum
        self._say = say
        self._look_every_s = look_every_s
        self._said_at: float | None = None

    def is_enough(self, directory: Path) -> bool:
        """Whether the file system of a directory has the minimum left; True when that cannot be told."""
        try:
            return shutil.disk_usage(directory).free >= self._minimum
        except OSError:
            return True

    async def wait(self, directory: Path) -> None:
        """Return when there is enough; says every minute what it waits for."""
        while not self.is_enough(directory):
            self._tell(directory)
            await anyio.sleep(self._look_every_s)

    def _tell(self, directory: Path) -> None:
        now = time.monotonic()
        if self._said_at is None or now - self._said_at >= SAY_EVERY_S:
            self._said_at = now
            wanted = self._minimum / 2**20
            self._say(
                f"waiting for disk space: less than {wanted:g} MiB are free for '{directory}';"
                " make room there, or ask for less with --backend-args min-free=SIZE"
            )
