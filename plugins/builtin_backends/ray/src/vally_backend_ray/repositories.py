"""Local git repositories that workspaces start from: a copy of each travels in the bundle."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vally import BackendError
from vally_backend_ray.codes import NOT_BUNDLED

TIMEOUT_S = 3600


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository on the driver: what has its HEAD, and where a copy of it belongs in a bundle."""

    git_dir: Path
    place: Path


def find_repository(directory: Path) -> Repository | None:
    """The repository around a directory, bare ones included; None when there is none."""
    for parent in (directory, *directory.parents):
        link = parent / ".git"
        if link.is_dir():
            return Repository(link, link)
        if link.is_file():
            named = _named_git_dir(link)
            return None if named is None else Repository(named, link)
        if (parent / "HEAD").is_file() and (parent / "objects").is_dir() and (parent / "refs").is_dir():
            return Repository(parent, parent)
    return None


def _named_git_dir(link: Path) -> Path | None:
    text = link.read_text(encoding="utf-8", errors="surrogateescape").strip()
    named = link.parent / text.removeprefix("gitdir:").strip()
    return named if text.startswith("gitdir:") and named.is_dir() else None


def copy_repository(repository: Repository, target: Path, process_env: Mapping[str, str]) -> None:
    """Put all that references lead to, and HEAD, into the new directory `target`; the repository is only read.

    Raises `BackendError`.
    """
    git = shutil.which("git", path=process_env.get("PATH", os.defpath))
    if git is None:
        raise BackendError("git was not found on PATH", code=NOT_BUNDLED)
    source = str(repository.git_dir)
    # One thread packs the same history in the same way each time, so that a bundle keeps its name.
    command = [git, "-c", "pack.threads=1", "clone", "--quiet", "--mirror", "--no-local", source, str(target)]
    try:
        done = subprocess.run(
            command,
            env=_environment(process_env, target.parent),
            cwd=target.parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(repository, str(error)) from error
    if done.returncode != 0:
        raise _failed(repository, " ".join(done.stderr.decode(errors="replace").split()))
    _make_plain(target)


def _failed(repository: Repository, reason: str) -> BackendError:
    return BackendError(
        f"cannot take the repository '{repository.place}' along to the workers: {reason}",
        code=NOT_BUNDLED,
    )


def _environment(process_env: Mapping[str, str], home: Path) -> dict[str, str]:
    """No configuration of user or system counts; a repository of somebody else may be read all the same."""
    return {
        "PATH": process_env.get("PATH", os.defpath),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_TEMPLATE_DIR": "",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }


def _make_plain(target: Path) -> None:
    """Leave nothing that depends on where the copy was made."""
    config = target / "config"
    lines = config.read_text(encoding="utf-8", errors="surrogateescape").splitlines(keepends=True)
    kept = []
    skipping = False
    for line in lines:
        if line.startswith("["):
            skipping = line.startswith('[remote "')
        if not skipping:
            kept.append(line)
    config.write_text("".join(kept), encoding="utf-8", errors="surrogateescape")
    for name in ("hooks", "branches"):
        shutil.rmtree(target / name, ignore_errors=True)
    (target / "description").unlink(missing_ok=True)
