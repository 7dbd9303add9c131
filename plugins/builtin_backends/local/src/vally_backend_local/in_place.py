"""Workspaces that belong to the user: only a clean git checkout tells what an agent changed there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vally_backend_local.git_environment import without_locations
from vally_backend_local.git_origin import make_git
from vally_backend_local.git_process import SnapshotError

# The index may not be refreshed, and nothing of the repository's configuration may run.
_OPTIONS = ("--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


def diff_obstacle(workspace: Path, process_env: Mapping[str, str], scratch: Path) -> str | None:
    """Return why the diff of a run in this directory would mean nothing, None when it means something. Blocks."""
    git = make_git(without_locations(process_env), scratch)
    try:
        listed = git.run([*_OPTIONS, "status", "--porcelain", "--untracked-files=normal", "--", "."], cwd=workspace)
    except SnapshotError as error:
        if error.message == "git not found":
            return error.message
        return "the in-place workspace is not a git checkout"
    return "the in-place workspace is not a clean git checkout" if listed.stdout else None
