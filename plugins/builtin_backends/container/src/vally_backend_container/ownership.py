"""Giving directories to the user of an image, and back to the caller, for engines that do not map one to the other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from vally_backend_container.config import Mount
from vally_backend_container.containers import Recipe, confined, labelled, mounted

CHANGING = 'owner=$1; shift; exec chown -R -h "$owner" "$@"'
SECONDS = 300.0


async def change_owner(recipe: Recipe, directories: Sequence[Path], owner: str) -> None:
    """Give directories with all that is in them to `uid:gid`, as the engine counts users. Raises EngineError.

    Done inside, because the caller may not have the right to do it here.
    """
    if not directories:
        return
    words = confined(recipe.engine, recipe.args, "none")
    words += ["--cap-add", "CHOWN", "--cap-add", "DAC_READ_SEARCH", "--user", "0:0"]
    words += labelled(recipe.labels)
    words += mounted([Mount(path, path, read_only=False) for path in directories])
    command = ["run", "--rm", *words, recipe.identity.image, "-c", CHANGING, "vally", owner, *map(str, directories)]
    await recipe.engine.call(*command, seconds=SECONDS)


def foreign_in(directories: Iterable[Path]) -> list[Path]:
    """Those of the directories in which, or below which, something belongs to another user than the caller."""
    return [path for path in directories if _is_foreign(str(path))]


def _is_foreign(path: str) -> bool:
    try:
        if os.lstat(path).st_uid != os.geteuid():
            return True
        with os.scandir(path) as entries:
            found = list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError:
        return True
    return any(
        _is_foreign(entry.path)
        if entry.is_dir(follow_symlinks=False)
        else entry.stat(follow_symlinks=False).st_uid != os.geteuid()
        for entry in found
    )
