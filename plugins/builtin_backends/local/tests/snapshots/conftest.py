"""Workspaces, snapshots of them and ways to compare directories, with real git and a clean configuration."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from vally_backend_local.baseline_cache import BaselineCache
from vally_backend_local.snapshots import Snapshotter

CLEAN = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@example.org",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.org",
    "PATH": os.defpath,
    "HOME": os.devnull,
}


def run_git(*args: str, cwd: Path) -> str:
    done = subprocess.run(["git", *args], cwd=cwd, env=CLEAN, check=True, capture_output=True)
    return done.stdout.decode("utf-8", "replace")


def contents(root: Path) -> dict[bytes, tuple[str, bytes]]:
    """Files and links of a directory as git stores them, `.git` left out."""
    found: dict[bytes, tuple[str, bytes]] = {}
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if ".git" in relative.parts:
            continue
        if path.is_symlink():
            found[os.fsencode(relative)] = ("link", os.fsencode(path.readlink()))
        elif path.is_file():
            kind = "program" if path.stat().st_mode & stat.S_IXUSR else "file"
            found[os.fsencode(relative)] = (kind, path.read_bytes())
    return found


def fingerprint(root: Path) -> dict[str, tuple[int, ...] | bytes]:
    """Everything about a directory that a writer would change, `.git` included."""
    found: dict[str, tuple[int, ...] | bytes] = {}
    for path in [root, *sorted(root.rglob("*"))]:
        facts = path.lstat()
        key = str(path.relative_to(root))
        found[key] = (facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)
        if stat.S_ISREG(facts.st_mode):
            found[key + "\0content"] = path.read_bytes()
    return found


@dataclass
class Trial:
    """A workspace and the snapshots taken of it."""

    workspace: Path
    private: Path
    cache: BaselineCache | None = None
    options: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.workspace.mkdir(exist_ok=True)
        self.snapshots = Snapshotter(self.workspace, self.private, cache=self.cache, **self.options)  # type: ignore[arg-type]
        self.before = ""

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def baseline(self, key: str | None = None) -> str:
        self.before = self.snapshots.baseline(key)
        return self.before

    def diff(self) -> str:
        """The text of the change since the baseline; an error fails the test."""
        result = self.snapshots.diff(self.before, self.snapshots.final())
        assert result.error is None
        assert result.text is not None
        assert result.size == len(result.text.encode())
        return result.text

    def patched(self, untouched: Path, attributes: str = "") -> dict[bytes, tuple[str, bytes]]:
        """What `git apply` makes of the baseline `untouched`; `attributes` go before those of the directory."""
        patch = self.private.with_suffix(".patch")
        if self.snapshots.patch(self.before, self.snapshots.final(), patch):
            run_git("init", "-q", cwd=untouched)
            (untouched / ".git" / "info" / "attributes").write_text(attributes)
            run_git("apply", "--whitespace=nowarn", str(patch), cwd=untouched)
            shutil.rmtree(untouched / ".git")
        return contents(untouched)


@pytest.fixture
def make_trial(tmp_path: Path) -> Callable[..., Trial]:
    made: list[Trial] = []

    def make(cache: BaselineCache | None = None, **options: object) -> Trial:
        number = len(made)
        made.append(Trial(tmp_path / f"workspace{number}", tmp_path / f"private{number}", cache, options))
        return made[-1]

    return make


@pytest.fixture
def trial(make_trial: Callable[..., Trial]) -> Trial:
    return make_trial()


@pytest.fixture
def git() -> Callable[..., str]:
    return run_git


@pytest.fixture
def contents_of() -> Callable[[Path], dict[bytes, tuple[str, bytes]]]:
    return contents


@pytest.fixture
def fingerprint_of() -> Callable[[Path], dict[str, tuple[int, ...] | bytes]]:
    return fingerprint
