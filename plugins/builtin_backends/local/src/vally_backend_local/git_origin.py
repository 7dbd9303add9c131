"""Which commit a workspace starts from, and where its objects are."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vally import GitSource
from vally_backend_local.failures import SetupError
from vally_backend_local.git_environment import REMOTE, isolated, with_remote, without_credentials
from vally_backend_local.git_process import GitProcess, Limits, SnapshotError

FORMAT = 1
GIT_LIMITS = Limits(timeout=3600.0, patience=3600.0)
_FULL_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SOME_ID = re.compile(r"[0-9a-f]{4,64}")


@dataclass(frozen=True)
class Origin:
    """A commit, and what is needed to copy it and what `history` allows.

    `objects` are the object directories that hold it. `refs` maps full names to ids, and `head` is the branch that
    the source has checked out, both for `history: all` only. `shallow` are the commits where the history ends.
    `remote` is the address when nothing was fetched yet; `objects` is empty then.
    """

    commit: str
    history: str
    label: str
    object_format: str = "sha1"
    objects: tuple[Path, ...] = ()
    shallow: tuple[str, ...] = ()
    refs: Mapping[str, str] = field(default_factory=dict)
    head: str | None = None
    remote: str | None = None
    depth: int | None = None

    @property
    def key(self) -> str:
        """Name of the private repository in the cache: a hash of all that its content depends on."""
        facts = {
            "format": FORMAT,
            "commit": self.commit,
            "history": self.history,
            "depth": self.depth,
            "remote": self.remote,
            "shallow": sorted(self.shallow),
            "refs": dict(sorted(self.refs.items())),
            "head": self.head,
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def isolated_git(scratch: Path) -> GitProcess:
    """Git without any configuration of the user or the system."""
    return make_git(isolated(scratch), scratch)


def make_git(environment: Mapping[str, str], scratch: Path) -> GitProcess:
    """Git with exactly this environment; `scratch` is an existing directory."""
    return GitProcess("git", environment, scratch, GIT_LIMITS, _no_obstacle)


def _no_obstacle() -> None:
    """Nothing that a workspace holds can block a command here: none is read while it is filled."""


class RemoteGit:
    """Git with the user's credentials and network settings, for commands that talk to one address each."""

    def __init__(self, scratch: Path, process_env: Mapping[str, str]) -> None:
        self._scratch = scratch
        self._process_env = process_env
        self._running: list[GitProcess] = []
        self._cancelled = False

    def run(self, url: str, args: Sequence[str], *, cwd: Path) -> bytes:
        """Run one command, in which `REMOTE` names `url`, and return its output. Raises SnapshotError."""
        environment = with_remote(self._process_env, url)
        git = make_git(environment, self._scratch)
        self._running.append(git)
        if self._cancelled:
            git.cancel()
        # Credential and transport helpers lie anywhere on the user's path.
        path = {"PATH": environment["PATH"]} if "PATH" in environment else {}
        return git.run(args, cwd=cwd, env=path).stdout

    def cancel(self) -> None:
        """Kill the command that is running and let all later ones fail."""
        self._cancelled = True
        for git in list(self._running):
            git.cancel()


def local_origin(source: GitSource, directory: Path, git: GitProcess) -> Origin:
    """Resolve the repository that contains `directory`. Raises SetupError."""
    git_dir, common_dir = _find_repository(directory)
    ref = source.ref or "HEAD"
    where = ("--git-dir", str(git_dir))
    try:
        text = git.run([*where, "rev-parse", "--show-object-format"], cwd=git_dir).stdout
        object_format = text.decode("ascii").strip()
        commit = git.run(
            [*where, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"], cwd=git_dir
        ).stdout
    except SnapshotError as error:
        raise _resolving_failed(error, ref, str(directory)) from error
    everything = source.history == "all"
    return Origin(
        commit=commit.decode("ascii").strip(),
        history=source.history,
        label=str(directory),
        object_format=object_format,
        objects=object_directories(common_dir / "objects"),
        shallow=read_shallow(common_dir),
        refs=list_refs(git, git_dir) if everything else {},
        head=_checked_out(git, git_dir, ref) if everything else None,
    )


def _find_repository(directory: Path) -> tuple[Path, Path]:
    """Return the git directory and the common one of the repository around a path, bare ones included."""
    import git

    try:
        with git.Repo(directory, search_parent_directories=True, expand_vars=False) as found:
            return Path(found.git_dir).resolve(), Path(found.common_dir).resolve()
    except (git.InvalidGitRepositoryError, git.NoSuchPathError, OSError) as error:
        raise SetupError(
            f"git source not found: no repository contains '{directory}'", code="git-source-not-found"
        ) from error


def _resolving_failed(error: SnapshotError, ref: str, label: str) -> SetupError:
    if error.message == "git not found":
        return git_missing()
    return SetupError(f"git ref not found: '{ref}' names no commit in '{label}'", code="git-ref-not-found")


def git_missing() -> SetupError:
    """The error of a machine without git."""
    return SetupError("git not found: install git, or remove 'git' from the environment", code="git-not-found")


def object_directories(objects: Path) -> tuple[Path, ...]:
    """Return an object directory and all those it borrows from, absolute: git refuses nested relative ones."""
    found: list[Path] = []
    pending = [objects]
    while pending:
        directory = pending.pop(0).resolve()
        if directory in found or not directory.is_dir():
            continue
        found.append(directory)
        alternates = directory / "info" / "alternates"
        if alternates.is_file():
            lines = alternates.read_bytes().split(b"\n")
            pending += [directory / os.fsdecode(line) for line in lines if line and not line.startswith(b"#")]
    return tuple(found)


def read_shallow(git_dir: Path) -> tuple[str, ...]:
    """Return the commits at which a shallow history ends."""
    path = git_dir / "shallow"
    return tuple(path.read_text(encoding="ascii").split()) if path.is_file() else ()


def list_refs(git: GitProcess, git_dir: Path) -> dict[str, str]:
    """Return all branches, tags and other references with the ids they hold."""
    text = git.run(
        ["--git-dir", str(git_dir), "for-each-ref", "--format=%(objectname) %(refname)"], cwd=git_dir
    ).stdout.decode("utf-8", "surrogateescape")
    pairs = (line.split(" ", 1) for line in text.splitlines())
    return {name: commit for commit, name in pairs}


def _checked_out(git: GitProcess, git_dir: Path, ref: str) -> str | None:
    """Return the full name of the branch that `ref` is, None for anything else."""
    try:
        found = git.run(
            ["--git-dir", str(git_dir), "rev-parse", "--symbolic-full-name", "--end-of-options", ref], cwd=git_dir
        ).stdout
    except SnapshotError:
        return None
    name = found.decode("utf-8", "surrogateescape").strip().splitlines()[-1:]
    return name[0] if name and name[0].startswith("refs/heads/") else None


def remote_origin(source: GitSource, base: Path, git: RemoteGit) -> Origin:
    """Ask a remote what `ref` is; nothing is fetched. Raises SetupError."""
    url = absolute_url(source.url or "", base)
    label = without_credentials(source.url or "")
    if source.history != "all" and source.ref and _FULL_ID.fullmatch(source.ref):
        found: dict[str, str] = {}
    else:
        found = _ask_remote(git, url, label, base)
    commit = source.ref if source.ref and _FULL_ID.fullmatch(source.ref) else _choose(found, source.ref, label)
    everything = source.history == "all"
    branch = found.get("HEAD symref") if source.ref is None else f"refs/heads/{source.ref}"
    kept = ("refs/heads/", "refs/tags/")
    return Origin(
        commit=commit,
        history=source.history,
        label=label,
        refs={name: value for name, value in found.items() if name.startswith(kept) and not name.endswith("^{}")}
        if everything
        else {},
        head=branch if everything and branch in found else None,
        remote=url,
        depth=1 if source.shallow or source.history == "none" else None,
    )


def absolute_url(url: str, base: Path) -> str:
    """Make a relative path absolute; anything with a scheme or a host stays as it is."""
    path = base / url
    return str(path.resolve()) if "://" not in url and path.exists() else url


def _ask_remote(git: RemoteGit, url: str, label: str, cwd: Path) -> dict[str, str]:
    try:
        output = git.run(url, ["ls-remote", "--symref", REMOTE], cwd=cwd)
    except SnapshotError as error:
        raise clone_failed(error, label) from error
    found: dict[str, str] = {}
    for line in output.decode("utf-8", "surrogateescape").splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: "):
            found[f"{name} symref"] = value.removeprefix("ref: ")
        else:
            found[name] = value
    return found


def _choose(found: Mapping[str, str], ref: str | None, label: str) -> str:
    names = ["HEAD"] if ref is None else [f"refs/heads/{ref}", f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}", ref]
    for name in names:
        if name in found:
            return found[name]
    if ref is not None and _SOME_ID.fullmatch(ref):
        return ref
    what = f"'{ref}' is no branch, tag or commit of" if ref else "there is no default branch in"
    raise SetupError(f"git ref not found: {what} '{label}'", code="git-ref-not-found")


def clone_failed(error: SnapshotError, label: str) -> SetupError:
    """Word the failure of a command that talked to a remote."""
    if error.message == "git not found":
        return git_missing()
    reason = without_credentials(error.message)
    return SetupError(f"cannot clone '{label}': {reason}", code="git-clone-failed", retryable=True)
