"""Changes that a fixture makes to the workspace."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from vally import ExecutorError


def apply_changes(work_dir: Path, files: Mapping[str, str | None]) -> None:
    """Write the texts and delete what is null; raises `ExecutorError` for a path that leaves the workspace."""
    root = work_dir.resolve()
    for name, text in files.items():
        target = _target(root, name)
        try:
            _remove(target) if text is None else _write(target, text)
        except OSError as error:
            raise _unusable(name, error.strerror or str(error)) from None


def _target(root: Path, name: str) -> Path:
    try:
        parent = (root / name).parent.resolve()
        target = parent / Path(name).name
        # A link that is there is followed by a write, so where it leads counts too.
        places = (parent, target, target.resolve())
    except (OSError, ValueError) as error:
        raise _unusable(name, str(error)) from None
    if target == root or not all(place.is_relative_to(root) for place in places):
        raise _unusable(name, "the path leaves the workspace")
    return target


def _write(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text.encode())


def _remove(target: Path) -> None:
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)


def _unusable(name: str, problem: str) -> ExecutorError:
    return ExecutorError(f"malformed fixture: file '{name}': {problem}", code="agent-protocol")
