"""Workspaces that stay after a run: which directories earlier runs made, and so may clear."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from vally import atomic_write
from vally_backend_local.copying import remove_tree
from vally_backend_local.failures import SetupError, from_os_error

RECORD = ".vally-workspaces.json"


class KeptWorkspaces:
    """Hands out workspaces below kept roots; one object per run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def claim(self, path: Path, root: Path) -> None:
        """Make `path` an empty directory; raises SetupError when that would remove what no earlier run made."""
        try:
            with self._lock:
                self._claim(path, root)
        except OSError as error:
            raise from_os_error(error, f"prepare the workspace '{path}'") from error

    def _claim(self, path: Path, root: Path) -> None:
        name = path.relative_to(root).as_posix()
        known = _read(root)
        # With another number of trials, evals or models workspaces of earlier runs lie above or below this one.
        above = {other for other in known if name.startswith(f"{other}/")}
        below = {other for other in known if other.startswith(f"{name}/")}
        for other in above:
            remove_tree(root / other)
        if path.is_dir() and any(path.iterdir()):
            if name not in known and not _holds_only(path, {root / other for other in below}):
                raise SetupError(
                    f"workspace '{path}' is not empty and was not made by an earlier run; "
                    "empty it or choose another --workspace",
                    code="workspace-not-empty",
                )
            remove_tree(path)
        path.mkdir(parents=True, exist_ok=True)
        record = {*known - above - below, name}
        if record != known:
            # Before anything is put there, so that a run that was killed can be repeated.
            text = json.dumps({"version": 1, "workspaces": sorted(record)}, indent=2)
            atomic_write(root / RECORD, (text + "\n").encode())


def _holds_only(directory: Path, known: set[Path]) -> bool:
    """Whether all that lies in a directory are known workspaces, or directories on the way to them."""
    return all(
        entry in known or (entry.is_dir() and not entry.is_symlink() and _holds_only(entry, known))
        for entry in directory.iterdir()
    )


def _read(root: Path) -> set[str]:
    try:
        names = json.loads((root / RECORD).read_bytes())["workspaces"]
    except FileNotFoundError:
        return set()
    except (ValueError, KeyError, TypeError):
        return set()
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
