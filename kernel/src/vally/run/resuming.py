"""The results file of a run that is continued: what is kept of it, and the former file beside it."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vally.run.atomic import sync_directory


@dataclass(frozen=True, slots=True)
class Kept:
    """A record of an earlier attempt that stays: where its line lies in the results file of which part."""

    item_id: str
    part: str
    offset: int
    length: int


def results_to_resume(path: Path) -> Path:
    """The file that holds the records of an interrupted run: `results.jsonl`, else what a crash left as `.prev`."""
    previous = _previous(path)
    return previous if not path.exists() and previous.exists() else path


def restart_results(path: Path, kept: Iterable[bytes]) -> None:
    """Replace a results file by the kept lines (without LF); the complete former file stays as `<name>.prev`.

    A crash at any moment leaves the former or the new file whole. Raises `OSError`; nothing has changed then.
    """
    token = secrets.token_hex(6)
    fresh = path.with_name(f".{path.name}.{token}.tmp")
    former = path.with_name(f".{_previous(path).name}.{token}.tmp")
    try:
        with fresh.open("xb") as file:
            for line in kept:
                file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            _second_name(path, former)
            former.replace(_previous(path))
        fresh.replace(path)
        sync_directory(path.parent)
    finally:
        for leftover in (fresh, former):
            leftover.unlink(missing_ok=True)


def _second_name(path: Path, name: Path) -> None:
    try:
        os.link(path, name)
    except OSError:
        # The file system has no hard links.
        shutil.copyfile(path, name)


def _previous(path: Path) -> Path:
    return path.with_name(f"{path.name}.prev")
