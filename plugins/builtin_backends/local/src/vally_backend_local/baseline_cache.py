"""Baselines kept between trials: one directory per key with the objects, the index and the list of paths."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vally_backend_local.stat_index import Status, TreeState, Workspace, now, refresh_links, status_of

# Raised whenever an older entry would be read wrongly.
FORMAT = 1

_PLAIN_KEY = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]{0,127}")
_DAY_S = 86_400.0


@dataclass(frozen=True)
class Entry:
    """One cached baseline; `paths` holds what `encode_paths` made."""

    directory: Path
    tree: str
    paths: bytes

    @property
    def objects(self) -> Path:
        return self.directory / "objects"

    @property
    def index(self) -> Path:
        return self.directory / "index"


class BaselineCache:
    """Finds, publishes and prunes entries below `<directory>/baselines`; safe for threads and processes.

    An entry is checked byte for byte the first time this object sees it, by the sizes of its files later on.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "baselines"
        self._verified: set[Path] = set()
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def building(self, key: str) -> Iterator[None]:
        """Let only one trial of this process build the baseline of a key while the others wait."""
        with self._guard:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            yield

    def find(self, key: str) -> Entry | None:
        """Return the sound entry of a key; a damaged one is removed."""
        directory = self._path(key)
        if not directory.is_dir():
            return None
        entry = self._read(directory)
        if entry is None:
            self._remove(directory)
            return None
        with contextlib.suppress(OSError):
            os.utime(directory)
        return entry

    def publish(self, key: str, objects: Path, index: Path, tree: str, paths: bytes) -> None:
        """Copy a baseline into the cache; trouble there is no failure, the next trial then makes its own."""
        directory = self.directory / f".new-{secrets.token_hex(8)}"
        with contextlib.suppress(OSError):
            self.directory.mkdir(parents=True, exist_ok=True)
            directory.mkdir(mode=0o700)
            shutil.copytree(objects, directory / "objects")
            shutil.copyfile(index, directory / "index")
            (directory / "paths").write_bytes(paths)
            record = {"format": FORMAT, "tree": tree, "files": _digests(directory)}
            (directory / "entry.json").write_text(json.dumps(record), encoding="utf-8")
            _flush(directory)
            # Fails when another process was faster; its entry is as good.
            directory.rename(self._path(key))
        shutil.rmtree(directory, ignore_errors=True)

    def prune(self, max_bytes: int, *, min_age_s: float = _DAY_S) -> None:
        """Remove the least recently used entries beyond `max_bytes`, none that was used in the last `min_age_s`."""
        if not self.directory.is_dir():
            return
        total = 0
        youngest = time.time() - min_age_s
        for directory in sorted(self.directory.iterdir(), key=_used_at, reverse=True):
            total += _bytes_below(directory)
            is_left_over = directory.name.startswith(".")
            if _used_at(directory) < youngest and (is_left_over or total > max_bytes):
                self._remove(directory)

    def _path(self, key: str) -> Path:
        name = key if _PLAIN_KEY.fullmatch(key) else hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return self.directory / name

    def _read(self, directory: Path) -> Entry | None:
        try:
            record = json.loads((directory / "entry.json").read_bytes())
            if record["format"] != FORMAT or not self._is_sound(directory, record["files"]):
                return None
            return Entry(directory, str(record["tree"]), (directory / "paths").read_bytes())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def _is_sound(self, directory: Path, files: Mapping[str, Any]) -> bool:
        if directory in self._verified:
            return all((directory / name).stat().st_size == size for name, (size, _) in files.items())
        sound = {name: tuple(value) for name, value in files.items()} == _digests(directory)
        if sound:
            self._verified.add(directory)
        return sound

    def _remove(self, directory: Path) -> None:
        # Renamed first, so that nobody finds half an entry.
        self._verified.discard(directory)
        doomed = self.directory / f".old-{secrets.token_hex(8)}"
        with contextlib.suppress(OSError):
            directory.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def encode_paths(state: TreeState) -> bytes:
    """Write down what a workspace must look like to have this baseline: kind, executable bit, size, commit."""
    lines = [b"%o %d\t%s" % (_kind(status[0]), status[1], path) for path, status in state.files.items()]
    lines += [b"160000 %s\t%s" % (commit.encode(), path) for path, commit in state.links.items()]
    return b"\0".join(lines)


def match_paths(workspace: Workspace, entry: Entry) -> TreeState | None:
    """Look at every path of a cached baseline; None when the workspace is visibly not the one it was made of."""
    looked_at = now()
    files: dict[bytes, Status] = {}
    links: dict[bytes, str] = {}
    for line in filter(None, entry.paths.split(b"\0")):
        facts, _, path = line.partition(b"\t")
        kind, _, value = facts.partition(b" ")
        if kind == b"160000":
            links[path] = value.decode("ascii")
            continue
        found = None if workspace.is_beyond_link(path) else workspace.status(path)
        if found is None or b"%o %d" % (_kind(found.st_mode), found.st_size) != facts:
            return None
        files[path] = status_of(found)
    if refresh_links(workspace, links) != (links, []):
        return None
    return TreeState(entry.tree, files, links, looked_at)


def _kind(mode: int) -> int:
    if stat.S_ISREG(mode):
        return 0o100755 if mode & 0o100 else 0o100644
    return stat.S_IFMT(mode)


def _digests(directory: Path) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for path in directory.rglob("*"):
        if path.is_file() and path.name != "entry.json":
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "blake2b").hexdigest()
            found[path.relative_to(directory).as_posix()] = (path.stat().st_size, digest)
    return found


def _flush(directory: Path) -> None:
    """Bring an entry to the disk, so that a crash of the machine leaves either none or a sound one."""
    for path in directory.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _used_at(directory: Path) -> float:
    try:
        return directory.stat().st_mtime
    except OSError:
        return 0.0


def _bytes_below(directory: Path) -> int:
    return sum(path.lstat().st_size for path in directory.rglob("*") if path.is_file())
