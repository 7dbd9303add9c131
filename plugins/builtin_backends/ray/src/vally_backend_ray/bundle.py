"""Bundles: the files that an eval or a plugin needs, as one archive named by the hash of what it holds."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from vally import BackendError
from vally_backend_ray.codes import NOT_BUNDLED
from vally_backend_ray.mirror import TOP, inside

FORMAT = 1
RUN_FILES = ("results.jsonl", "run-manifest.json")
"""Directories with such a file hold results, which no trial needs."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """An archive on the driver's disk. `key` depends on names, kinds, modes and contents; `size` is in bytes."""

    key: str
    archive: Path
    size: int


@dataclass(slots=True)
class BundleFiles:
    """Gathers what goes into a bundle, by absolute path on the driver.

    `places` are directories that must exist, whatever is in them; `extra` has directories to put at another path.
    """

    whole: set[Path] = field(default_factory=set)
    visible: set[Path] = field(default_factory=set)
    places: set[Path] = field(default_factory=set)
    extra: dict[Path, Path] = field(default_factory=dict)

    def entries(self) -> dict[Path, Path]:
        """Map each path in the bundle to where its content lies, sorted; missing ones are left out.

        Directories of `visible` go without what is hidden, caches of Python, virtual environments and results.
        """
        found = {path: path for path in self.places if path.is_dir()}
        for path in self.visible:
            for entry in _walk(path, _is_wanted):
                found.setdefault(entry, entry)
        for path in self.whole:
            found.update((entry, entry) for entry in _walk(path, _anything))
        for at, source in self.extra.items():
            for entry in _walk(source, _anything):
                found[at / entry.relative_to(source)] = entry
        return dict(sorted(found.items(), key=lambda pair: pair[0].parts))


def _anything(_: os.DirEntry[str]) -> bool:
    return True


def _is_wanted(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or entry.name == "__pycache__":
        return False
    if not entry.is_dir(follow_symlinks=False):
        return True
    inner = Path(entry.path)
    return not any((inner / name).exists() for name in ("pyvenv.cfg", *RUN_FILES))


def _walk(path: Path, wanted: Callable[[os.DirEntry[str]], bool]) -> Iterator[Path]:
    """A path and everything below it; a link that is named itself counts as what it leads to."""
    if not os.path.lexists(path):
        return
    yield path
    pending = [path] if path.is_dir() else []
    while pending:
        with os.scandir(pending.pop()) as listing:
            for entry in listing:
                if wanted(entry):
                    yield Path(entry.path)
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(Path(entry.path))


def make_bundle(files: BundleFiles, directory: Path, *, limit: int) -> Bundle:
    """Write the archive into `directory`. Raises `BackendError` for what cannot be read, or more than `limit` bytes."""
    # Two bundles may have one key, and each is removed when it is no longer needed.
    archive = directory / f"{secrets.token_hex(8)}.tar"
    roots = {*files.whole, *files.visible, *files.places}
    try:
        entries = files.entries()
        _check_size(entries, limit)
        with archive.open("wb") as stream:
            key = _write_archive(stream, entries, roots)
            size = stream.tell()
    except OSError as error:
        about = f" '{error.filename}'" if error.filename else ""
        raise BackendError(
            f"cannot take{about} along to the workers: {error.strerror or error}", code=NOT_BUNDLED
        ) from error
    return Bundle(key, archive, size)


def _check_size(entries: dict[Path, Path], limit: int) -> None:
    total = 0
    for source in entries.values():
        status = source.lstat()
        total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    if total > limit:
        at = os.path.commonpath([str(path) for path in entries])
        raise BackendError(
            f"the files that an eval needs have {total / 2**20:,.0f} MiB, at most "
            f"{limit / 2**20:,.0f} MiB travel to the workers (below '{at}')",
            code=NOT_BUNDLED,
            hints=("give the eval a directory of its own, without data that trials do not need",),
        )


def _write_archive(stream: IO[bytes], entries: dict[Path, Path], roots: Iterable[Path]) -> str:
    digest = hashlib.sha256(f"bundle {FORMAT}\n".encode())
    named = set(roots)
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, source in entries.items():
            info = _info(tar, path, source, follow=path in named)
            if info is not None:
                facts: list[Any] = [info.name, info.type.decode(), info.mode, info.linkname]
                facts.append(_add(tar, info, source))
                digest.update(json.dumps(facts).encode() + b"\n")
    return digest.hexdigest()[:32]


def _info(tar: tarfile.TarFile, path: Path, source: Path, *, follow: bool) -> tarfile.TarInfo | None:
    actual = source.resolve() if follow else source
    mode = actual.lstat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode) or stat.S_ISFIFO(mode)):
        return None
    info = tar.gettarinfo(str(actual), arcname=f"{TOP}/{inside(path)}")
    # Hard links would name each other by paths of this machine.
    if info.islnk():
        info.type, info.linkname, info.size = tarfile.REGTYPE, "", actual.stat().st_size
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _add(tar: tarfile.TarFile, info: tarfile.TarInfo, source: Path) -> str:
    """Put one entry into the archive and return the hash of its content."""
    if not info.isreg():
        tar.addfile(info)
        return ""
    with source.open("rb") as file:
        reader = _Hashing(file)
        tar.addfile(info, reader)
    return reader.digest.hexdigest()


class _Hashing:
    """A file that is hashed while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        data = self._file.read(size)
        self.digest.update(data)
        return data
