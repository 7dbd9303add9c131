"""Bundles on a node: each is unpacked once, under a temporary name that is then renamed."""

from __future__ import annotations

import os
import secrets
import shutil
import tarfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.to_thread

from vally_backend_local import remove_tree
from vally_backend_ray.mirror import TOP

UNUSED_DAYS = 14


class BundleStore:
    """The bundles below `<cache>/bundles`; workers of one node share them."""

    def __init__(self, cache_dir: Path) -> None:
        self._directory = cache_dir / "bundles"
        self._locks: dict[str, anyio.Lock] = {}

    async def root(self, key: str, pieces: AsyncIterator[bytes]) -> Path:
        """Where the files of a bundle lie, as `mirrored` wants it; the pieces are fetched only when it is new here.

        Raises `OSError`.
        """
        async with self._locks.setdefault(key, anyio.Lock()):
            place = self._directory / key
            if not place.is_dir():
                await self._fetch(key, pieces)
            await anyio.to_thread.run_sync(os.utime, place)
            return place / TOP

    async def _fetch(self, key: str, pieces: AsyncIterator[bytes]) -> None:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self._directory / f".{key}.{secrets.token_hex(6)}"
        draft.mkdir(mode=0o700)
        try:
            archive = draft / "archive"
            with archive.open("wb") as file:
                async for piece in pieces:
                    await anyio.to_thread.run_sync(file.write, piece)
            await anyio.to_thread.run_sync(_unpack, archive, draft)
            await anyio.to_thread.run_sync(_publish, draft, self._directory / key)
            await anyio.to_thread.run_sync(self._sweep)
        finally:
            if draft.exists():
                remove_tree(draft)

    def _sweep(self) -> None:
        """Remove what nobody has used for long, and drafts of workers that died."""
        oldest = time.time() - UNUSED_DAYS * 86400
        for entry in self._directory.iterdir():
            limit = time.time() - 86400 if entry.name.startswith(".") else oldest
            if entry.lstat().st_mtime < limit:
                shutil.rmtree(entry, ignore_errors=True)


def _unpack(archive: Path, target: Path) -> None:
    with tarfile.open(archive) as tar:
        # The archive comes from the driver of this very run; what it holds is what the driver has there, absolute
        # links and unwritable directories included. The argument `filter` came with Python 3.11.4.
        tar.extraction_filter = _as_it_is
        for info in tar:
            tar.extract(info, target, set_attrs=not info.isdir())
        directories = sorted((info for info in tar.getmembers() if info.isdir()), key=lambda info: info.name)
        for info in reversed(directories):
            tar.chmod(info, target / info.name)
            tar.utime(info, target / info.name)
    archive.unlink()


def _as_it_is(info: tarfile.TarInfo, _target: str) -> tarfile.TarInfo:
    return info


def _publish(draft: Path, place: Path) -> None:
    (draft / TOP).mkdir(exist_ok=True)
    try:
        draft.rename(place)
    except OSError:
        # Another worker of this node was quicker.
        if not place.is_dir():
            raise
