"""A private repository with just the objects that an agent may find in it.

Built from an origin without writing to it: its objects are read through a temporary alternates file, what the history
may show is copied into one pack, and nothing else is left: no remote, no tag, no reflog, no hook, no second branch.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from vally_backend_local.failures import SetupError
from vally_backend_local.git_environment import REMOTE, without_credentials
from vally_backend_local.git_origin import (
    Origin,
    RemoteGit,
    clone_failed,
    git_missing,
    isolated_git,
    list_refs,
    object_directories,
    read_shallow,
)
from vally_backend_local.git_process import GitCommandError, GitProcess, SnapshotError

BRANCH = "refs/heads/main"
FETCHED = "refs/vally/fetched"
AUTHOR = {"NAME": "user", "EMAIL": "user@localhost"}


class CloneBuilder:
    """Builds private repositories; `process_env` is for talking to remotes only. Blocks, but for `cancel`."""

    def __init__(self, scratch: Path, process_env: Mapping[str, str]) -> None:
        self._git = isolated_git(scratch)
        self._remote = RemoteGit(scratch, process_env)

    def build(self, origin: Origin, target: Path) -> None:
        """Make the repository of `origin` in the empty directory `target`, as `target/.git`. Raises SetupError."""
        try:
            with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as scratch:
                local = self._fetch(origin, Path(scratch)) if origin.remote else origin
                self._build(local, target)
        except SnapshotError as error:
            if error.message == "git not found":
                raise git_missing() from error
            reason = without_credentials(error.message)
            raise SetupError(f"cannot prepare '{origin.label}': {reason}", code="git-setup-failed") from error

    def cancel(self) -> None:
        """Kill the git command that is running and let all later ones fail."""
        self._git.cancel()
        self._remote.cancel()

    def _build(self, origin: Origin, target: Path) -> None:
        self._init(target, origin.object_format)
        git_dir = target / ".git"
        alternates = git_dir / "objects" / "info" / "alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_bytes(b"".join(os.fsencode(path) + b"\n" for path in origin.objects))
        if origin.shallow:
            _write_shallow(git_dir, origin.shallow)
        commit = self._single_commit(origin, target) if origin.history == "none" else origin.commit
        self._pack(git_dir, [commit, *origin.refs.values()])
        # Not even `history: all` borrows for good: writing an object that a borrowed directory has changes its time.
        alternates.unlink()
        self._write_refs(git_dir, origin, commit)
        self._trim_shallow(git_dir, origin)

    def _init(self, target: Path, object_format: str) -> None:
        options = ["--quiet", "--template=", f"--object-format={object_format}", "--initial-branch=main"]
        self._git.run(["init", *options, "."], cwd=target)

    def _single_commit(self, origin: Origin, target: Path) -> str:
        facts = self._git.run(["show", "--no-patch", "--format=%T %ct", origin.commit], cwd=target).stdout
        tree, seconds = facts.decode("ascii").split()
        identity = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in AUTHOR.items()}
        dates = {f"GIT_{role}_DATE": f"{seconds} +0000" for role in ("AUTHOR", "COMMITTER")}
        made = self._git.run(
            ["commit-tree", "-m", "Initial commit", tree], cwd=target, env={**identity, **dates}
        ).stdout
        return made.decode("ascii").strip()

    def _pack(self, git_dir: Path, tips: list[str]) -> None:
        packs = git_dir / "objects" / "pack"
        packs.mkdir(exist_ok=True)
        options = ["--revs", "--delta-base-offset", "--quiet"]
        stdin = "".join(f"{tip}\n" for tip in dict.fromkeys(tips)).encode("ascii")
        self._git.run(["pack-objects", *options, str(packs / "pack")], cwd=git_dir, stdin=stdin)
        # The commit made for `history: none` was a loose object until now.
        self._git.run(["prune-packed", "--quiet"], cwd=git_dir)

    def _write_refs(self, git_dir: Path, origin: Origin, commit: str) -> None:
        if origin.history != "all":
            branch = git_dir / BRANCH
            branch.parent.mkdir(parents=True, exist_ok=True)
            branch.write_text(f"{commit}\n", encoding="ascii")
            return
        lines = sorted(f"{value} {name}\n" for name, value in origin.refs.items())
        (git_dir / "packed-refs").write_bytes("".join(lines).encode("utf-8", "surrogateescape"))
        (git_dir / "HEAD").write_text(f"ref: {origin.head}\n" if origin.head else f"{commit}\n", encoding="utf-8")

    def _trim_shallow(self, git_dir: Path, origin: Origin) -> None:
        """Keep only ends of the history that are in this repository; others would name commits of the source."""
        if not origin.shallow:
            return
        names = "".join(f"{commit}\n" for commit in origin.shallow).encode("ascii")
        answers = self._git.run(["cat-file", "--batch-check"], cwd=git_dir, stdin=names).stdout.decode("ascii")
        found = [line.split()[0] for line in answers.splitlines() if not line.endswith(" missing")]
        if origin.history == "none":
            found = []
        _write_shallow(git_dir, tuple(found))

    def _fetch(self, origin: Origin, scratch: Path) -> Origin:
        """Copy what is needed from a remote into a repository below `scratch`."""
        repository = scratch / "repository"
        repository.mkdir()
        try:
            git_dir = self._fetch_into(origin, repository)
        except SnapshotError as error:
            raise clone_failed(error, origin.label) from error
        try:
            found = self._git.run(
                ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{origin.commit}^{{commit}}"], cwd=git_dir
            ).stdout
        except SnapshotError as error:
            raise SetupError(
                f"git ref not found: '{origin.commit}' is no commit of '{origin.label}'", code="git-ref-not-found"
            ) from error
        commit, everything = found.decode("ascii").strip(), origin.history == "all"
        return replace(
            origin,
            commit=commit,
            object_format=_object_format(commit),
            objects=object_directories(git_dir / "objects"),
            shallow=(commit,) if origin.depth and not everything else read_shallow(git_dir),
            refs=list_refs(self._git, git_dir) if everything else {},
        )

    def _fetch_into(self, origin: Origin, repository: Path) -> Path:
        self._init(repository, _object_format(origin.commit))
        branches = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"]
        if origin.history == "all":
            self._run_fetch(origin, repository, branches)
            return repository / ".git"
        try:
            # The commit alone, which not every server gives out by its id.
            self._run_fetch(origin, repository, [f"{origin.commit}:{FETCHED}"])
        except GitCommandError:
            self._run_fetch(origin, repository, branches, depth=False)
        return repository / ".git"

    def _run_fetch(self, origin: Origin, repository: Path, wanted: list[str], *, depth: bool = True) -> None:
        options = ["--quiet", "--no-tags", "--no-write-fetch-head", "--update-head-ok", "--update-shallow"]
        if depth and origin.depth:
            options.append(f"--depth={origin.depth}")
        assert origin.remote is not None
        self._remote.run(origin.remote, ["fetch", *options, REMOTE, *wanted], cwd=repository)


def check_out(git: GitProcess, workspace: Path, sparse: tuple[str, ...]) -> None:
    """Fill a workspace that holds a copy of a private repository with its files. Raises SetupError."""
    # A workspace may lie in another repository, which must not be taken for its own.
    environment = {"GIT_DIR": str(workspace / ".git"), "GIT_WORK_TREE": str(workspace)}
    try:
        if sparse:
            stdin = "".join(f"{directory}\n" for directory in sparse).encode()
            git.run(["sparse-checkout", "set", "--cone", "--stdin"], cwd=workspace, stdin=stdin, env=environment)
        git.run(["read-tree", "-m", "-u", "HEAD"], cwd=workspace, env=environment)
    except SnapshotError as error:
        raise SetupError(f"cannot check out the repository: {error.message}", code="git-setup-failed") from error


def _write_shallow(git_dir: Path, commits: tuple[str, ...]) -> None:
    path = git_dir / "shallow"
    if commits:
        path.write_text("".join(f"{commit}\n" for commit in commits), encoding="ascii")
    else:
        path.unlink(missing_ok=True)


def _object_format(commit: str) -> str:
    return "sha256" if len(commit) == 64 else "sha1"
