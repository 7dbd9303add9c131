"""The files of a trial's artifact directory; only names found by listing it are served."""

from __future__ import annotations

import mimetypes
import os
from pathlib import Path
from typing import Any

from vally_command_results.query.errors import QueryError, not_found
from vally_command_results.server.site import Site

MAX_FILES = 1000
MAX_BYTES = 64 * 1024 * 1024


def artifact_root(site: Site, source: str, artifact_dir: str | None) -> Path | None:
    """The directory, when the server reads directories and it is there."""
    run = site.run_directory(source)
    if run is None or artifact_dir is None:
        return None
    root = run / artifact_dir
    inside = root.is_dir() and not root.is_symlink() and root.resolve().is_relative_to(run.resolve())
    return root if inside else None


def list_artifacts(root: Path | None) -> dict[str, Any]:
    """The files below the directory, by path; links, devices and names with a leading dot are left out."""
    if root is None:
        return {"available": False, "items": []}
    items = []
    for name in _names(root):
        size = (root / name).stat().st_size
        items.append(
            {"path": name, "size": size, "mediaType": mimetypes.guess_type(name)[0] or "application/octet-stream"}
        )
    return {"available": True, "items": items}


def _names(root: Path) -> list[str]:
    found: list[str] = []
    for directory, folders, files in os.walk(root, followlinks=False):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and not (Path(directory) / name).is_symlink()
        )
        for name in sorted(files):
            path = Path(directory) / name
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                found.append(path.relative_to(root).as_posix())
                if len(found) == MAX_FILES:
                    return sorted(found)
    return sorted(found)


def artifact_file(root: Path | None, known: bool, name: str) -> Path:
    """A file of the directory; raises `QueryError` for what is not served."""
    if root is None:
        raise (
            QueryError("artifact_unavailable", 404, "the artifacts are not at hand")
            if known
            else not_found("no artifacts")
        )
    # What was asked for is only compared with what is there, never joined to a path.
    if name not in _names(root):
        raise not_found("no such artifact")
    path = root / name
    if not path.resolve().is_relative_to(root.resolve()):
        raise not_found("no such artifact")
    if path.stat().st_size > MAX_BYTES:
        raise QueryError("too_large", 413, f"the file is larger than {MAX_BYTES // 1024**2} MiB")
    return path
