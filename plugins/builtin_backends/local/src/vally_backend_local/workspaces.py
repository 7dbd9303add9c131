"""Filling the workspace and assets of a trial with repository, files and skills, from the cache where possible."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from vally import GitSource, StagedFile
from vally_backend_local.copying import copy_tree
from vally_backend_local.entry_store import EntryStore
from vally_backend_local.failures import SetupError, from_os_error
from vally_backend_local.git_origin import Origin, RemoteGit, isolated_git, local_origin, remote_origin
from vally_backend_local.private_clone import CloneBuilder, check_out
from vally_backend_local.source_digest import SourceDigest, digest_source, source_status
from vally_backend_local.staging import Stager
from vally_backend_local.work import OncePerKey, Work

FORMAT = 1
MAX_CACHE_BYTES = 20 * 2**30
ATTEMPTS = 3
WARNINGS = "warnings.json"


@dataclass(frozen=True)
class StagePlan:
    """What is put into a workspace before commands run; `base` is the directory that relative sources start from.

    `cacheable` says that the result may be kept for later trials.
    """

    base: Path
    git: GitSource | None = None
    files: tuple[StagedFile, ...] = ()
    skills: tuple[Path, ...] = ()
    cacheable: bool = True

    def entries(self) -> Iterator[StagedFile]:
        """Files, then skills, which lie at their base names."""
        yield from self.files
        for directory in self.skills:
            yield StagedFile(src=directory, dest=directory.name)


@dataclass(frozen=True)
class Filled:
    """How a workspace was filled: the key of its content when that is known, and what is worth a warning."""

    key: str | None = None
    warnings: tuple[str, ...] = ()


class _SourceChanged(Exception):
    """A source was written to while it was read."""


class WorkspaceFiller:
    """Fills workspaces for all trials of a run; what is the same for several of them is made once.

    `cache_dir` None means no cache: then everything is made anew in `scratch`, an existing directory. Sources count as
    they are when a run first uses them. Methods block and may be called from any thread.
    """

    def __init__(self, cache_dir: Path | None, scratch: Path, process_env: Mapping[str, str]) -> None:
        self._scratch = scratch
        self._process_env = process_env
        self._cache_dir = cache_dir.resolve() if cache_dir else None
        self._trees = EntryStore(self._cache_dir / "workspaces") if self._cache_dir else None
        self._repositories = EntryStore((self._cache_dir or scratch) / "repositories")
        self._origins: OncePerKey[Origin] = OncePerKey()
        self._digests: OncePerKey[SourceDigest] = OncePerKey()

    def fill(self, plan: StagePlan, workspace: Path, assets: Path, work: Work) -> Filled:
        """Fill an existing workspace and, when something goes there, the asset directory. Raises SetupError."""
        _refuse_collisions(plan.skills)
        try:
            if not (plan.cacheable and self._trees and self._is_apart(plan)):
                return self._populate(plan, workspace, assets, work)
            return self._from_cache(self._trees, plan, workspace, assets, work)
        except OSError as error:
            raise from_os_error(error, "prepare the workspace") from error

    def prune(self) -> None:
        """Keep the caches within their bounds."""
        for store in filter(None, (self._trees, self._repositories)):
            store.prune(MAX_CACHE_BYTES)

    def _is_apart(self, plan: StagePlan) -> bool:
        """Whether no source contains the cache, which would then be staged into itself."""
        assert self._cache_dir is not None
        return not any(self._cache_dir.is_relative_to(entry.src.resolve()) for entry in plan.entries())

    def _from_cache(self, trees: EntryStore, plan: StagePlan, workspace: Path, assets: Path, work: Work) -> Filled:
        for _ in range(ATTEMPTS):
            key = self._key(plan, work)
            with contextlib.suppress(_SourceChanged), trees.entry(key, self._maker(plan, work)) as entry:
                copy_tree(entry / "workspace", workspace, checkpoint=work.checkpoint)
                if (entry / "assets").is_dir():
                    copy_tree(entry / "assets", assets, checkpoint=work.checkpoint)
                warnings = tuple(json.loads((entry / WARNINGS).read_bytes()))
                return Filled(key, warnings)
        raise SetupError("a source of the environment keeps changing while it is staged", code="environment-setup")

    def _maker(self, plan: StagePlan, work: Work) -> Callable[[Path], None]:
        def make(entry: Path) -> None:
            (entry / "workspace").mkdir(mode=0o700)
            filled = self._populate(plan, entry / "workspace", entry / "assets", work)
            (entry / WARNINGS).write_text(json.dumps(filled.warnings), encoding="utf-8")
            self._check_unchanged(plan)

        return make

    def _check_unchanged(self, plan: StagePlan) -> None:
        changed = False
        for source in dict.fromkeys(entry.src for entry in plan.entries()):
            known = self._digests.get(source, lambda source=source: digest_source(source))  # type: ignore[misc]
            if source_status(source) != known.status:
                self._digests.forget(source)
                changed = True
        if changed:
            raise _SourceChanged

    def _key(self, plan: StagePlan, work: Work) -> str:
        """A hash of everything that the content of workspace and assets depends on."""
        facts = {
            "format": FORMAT,
            "git": [self._origin(plan, work).key, *plan.git.sparse] if plan.git else None,
            "files": [self._file_facts(entry, work) for entry in plan.entries()],
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]

    def _file_facts(self, entry: StagedFile, work: Work) -> list[object]:
        try:
            digest = self._digests.get(entry.src, lambda: digest_source(entry.src, work.checkpoint))
        except FileNotFoundError as error:
            message = f"file to stage not found: {entry.src}"
            raise SetupError(message, code="environment-file-not-found") from error
        return [entry.dest, entry.dest_root, entry.keep_name, entry.src.name, digest.content]

    def _populate(self, plan: StagePlan, workspace: Path, assets: Path, work: Work) -> Filled:
        if plan.git:
            self._place_repository(plan, workspace, work)
        stagers = {"workspace": Stager(workspace.resolve(), work.checkpoint)}
        for entry in plan.entries():
            if entry.dest_root not in stagers:
                if os.path.lexists(assets) and (assets.is_symlink() or not assets.is_dir()):
                    # An agent put it there, and would have the files of graders elsewhere.
                    assets.unlink()
                assets.mkdir(mode=0o700, exist_ok=True)
                stagers[entry.dest_root] = Stager(assets.resolve(), work.checkpoint)
            stagers[entry.dest_root].stage(entry.src, entry.dest, keep_name=entry.keep_name)
        warnings = [line for stager in stagers.values() for line in stager.warnings]
        return Filled(None, tuple(warnings))

    def _place_repository(self, plan: StagePlan, workspace: Path, work: Work) -> None:
        assert plan.git is not None
        origin = self._origin(plan, work)
        if any(workspace.iterdir()):
            raise SetupError(
                f"git needs an empty workspace, and '{workspace}' is not empty", code="workspace-not-empty"
            )
        builder = CloneBuilder(self._scratch, self._process_env)
        work.on_cancel(builder.cancel)
        with self._repositories.entry(origin.key, lambda entry: builder.build(origin, entry)) as entry:
            copy_tree(entry / ".git", workspace / ".git", checkpoint=work.checkpoint)
        git = isolated_git(self._scratch)
        work.on_cancel(git.cancel)
        check_out(git, workspace, plan.git.sparse)

    def _origin(self, plan: StagePlan, work: Work) -> Origin:
        """The commit of `git`, the same for all trials of the run although branches may move meanwhile."""
        source, base = plan.git, plan.base
        assert source is not None

        def resolve() -> Origin:
            if source.type == "clone":
                remote = RemoteGit(self._scratch, self._process_env)
                work.on_cancel(remote.cancel)
                return remote_origin(source, base, remote)
            git = isolated_git(self._scratch)
            work.on_cancel(git.cancel)
            return local_origin(source, source.source or base, git)

        return self._origins.get((source, base), resolve)


def _refuse_collisions(skills: tuple[Path, ...]) -> None:
    seen: dict[str, Path] = {}
    for directory in skills:
        other = seen.setdefault(directory.name, directory)
        if other.resolve() != directory.resolve():
            raise SetupError(
                f"skills '{other}' and '{directory}' would both be staged at '{directory.name}/'",
                code="skill-name-collision",
            )
