"""Results on a worker: they stay on its disk until the driver has recorded them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from vally_backend_local import remove_tree
from vally_backend_ray.messages import INLINE_BYTES, PIECE_BYTES, FileFacts, Reply

RUN = "run"
EXPORT = "export"
BODY = "outcome"


class Spool:
    """One directory per attempt below `directory`; blocks."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def place(self, attempt: str) -> Path:
        """The directory of an attempt, made when it is new."""
        path = self._directory / attempt
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    def reply(self, attempt: str, body: bytes) -> Reply:
        """A result as it is sent, with its files for the run directory; a large one waits in a file of its own."""
        place = self.place(attempt)
        files = tuple(list_files(place / RUN))
        if len(body) <= INLINE_BYTES:
            return Reply(body=body, files=files)
        (place / BODY).write_bytes(body)
        return Reply(body=None, files=files, body_file=FileFacts(name=BODY, size=len(body), mode=0o600))

    def read(self, attempt: str, part: str, name: str, offset: int) -> bytes:
        """A piece of a file; `part` is empty for the result itself. Raises `OSError`."""
        with (self._directory / attempt / part / name).open("rb") as file:
            file.seek(offset)
            return file.read(PIECE_BYTES)

    def forget(self, attempt: str) -> None:
        """Remove what is left of an attempt."""
        path = self._directory / attempt
        if path.exists():
            remove_tree(path)


def list_files(directory: Path) -> list[FileFacts]:
    """Files and links below a directory, sorted by name; nothing when there is no directory."""
    found = []
    for path in walked(directory):
        status = path.lstat()
        aim = str(path.readlink()) if stat.S_ISLNK(status.st_mode) else None
        if aim is None and not stat.S_ISREG(status.st_mode):
            continue
        size = 0 if aim is not None else status.st_size
        name = path.relative_to(directory).as_posix()
        found.append(FileFacts(name=name, size=size, mode=stat.S_IMODE(status.st_mode), link=aim))
    return sorted(found, key=lambda facts: facts.name)


def walked(directory: Path) -> Iterator[Path]:
    """All that lies below a directory but directories; links count as what they are, also those to directories."""
    for parent, directories, names in os.walk(directory):
        links = [name for name in directories if (Path(parent) / name).is_symlink()]
        yield from (Path(parent) / name for name in (*names, *links))
