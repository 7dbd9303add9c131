"""Results on a worker: they stay on its disk until the driver has recorded them."""

from __future__ import annotations

import os
import stat
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

    def reply(self, attempt: str, body: bytes, part: str = RUN) -> Reply:
        """A result as it is sent, with all files below `part`; a large one waits in a file of its own."""
        place = self.place(attempt)
        files = tuple(list_files(place / part))
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

    def waiting(self) -> list[str]:
        """Attempts whose results are still here."""
        return sorted(entry.name for entry in self._directory.iterdir())


def list_files(directory: Path) -> list[FileFacts]:
    """Files and links below a directory, sorted by name; nothing when there is no directory."""
    found = []
    for parent, directories, names in os.walk(directory):
        links = [name for name in directories if (Path(parent) / name).is_symlink()]
        for name in (*names, *links):
            path = Path(parent) / name
            status = path.lstat()
            aim = str(path.readlink()) if stat.S_ISLNK(status.st_mode) else None
            if aim is None and not stat.S_ISREG(status.st_mode):
                continue
            size = 0 if aim is not None else status.st_size
            name = path.relative_to(directory).as_posix()
            found.append(FileFacts(name=name, size=size, mode=stat.S_IMODE(status.st_mode), link=aim))
    return sorted(found, key=lambda facts: facts.name)
