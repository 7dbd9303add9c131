"""Snapshots of a workspace before, during and after an agent's work, and the changes between them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from vally_backend_local.baseline_cache import BaselineCache, encode_paths, match_paths
from vally_backend_local.git_process import GitCommandError, Limits, SnapshotError
from vally_backend_local.patches import MAX_DIFF_BYTES, DiffResult, diff_trees, write_patch
from vally_backend_local.private_repository import EMPTY_TREE, PrivateRepository
from vally_backend_local.stat_index import TreeState, Workspace, add_others, compare_known, now, refresh_links

NOTHING = TreeState(EMPTY_TREE, {}, {}, 0)
DEFAULT_LIMITS = Limits()
ATTEMPTS = 3


@dataclass(frozen=True)
class TurnDiffResult:
    """The change made in one conversation turn, or why it is not known."""

    turn: int
    diff: DiffResult


@dataclass(frozen=True)
class Capture:
    """The change of a whole trial; `patch_bytes` is 0 when no patch file was written."""

    diff: DiffResult
    patch_bytes: int = 0


@dataclass(frozen=True)
class _Turn:
    number: int
    before: str | None
    after: str | None
    error: str = ""


class Snapshotter:
    """Takes trees of `workspace` into `private_dir`, which becomes a git directory and lies outside the workspace.

    Nothing in the workspace is written, and no configuration, hook, filter or attribute of it is obeyed. The methods
    block; they may be called from any thread and wait for each other. Only `cancel` does not wait. `limits` hold
    for each git command.
    """

    def __init__(
        self,
        workspace: Path,
        private_dir: Path,
        *,
        cache: BaselineCache | None = None,
        git: str = "git",
        limits: Limits = DEFAULT_LIMITS,
        max_diff_bytes: int = MAX_DIFF_BYTES,
    ) -> None:
        self.workspace = workspace.resolve()
        self._cache = cache
        self._max_diff_bytes = max_diff_bytes
        self._repository = PrivateRepository(private_dir.resolve(), self.workspace, git=git, limits=limits)
        self._lock = threading.Lock()
        self._baseline: TreeState | None = None
        self._latest: TreeState | None = None
        self._failure = "no baseline was taken"
        self._turns: list[_Turn] = []
        self._skipped: set[bytes] = set()

    def baseline(self, cache_key: str | None = None) -> str:
        """Record the workspace as it is before the agent and return the tree. Raises SnapshotError.

        `cache_key` must differ whenever the content of the workspace differs; with it the objects come from the cache
        when they are there.
        """
        with self._lock:
            try:
                self._repository.create()
                self._baseline = self._latest = self._first_state(cache_key)
            except SnapshotError as error:
                self._failure = error.message
                raise
            return self._baseline.tree

    def rebase(self) -> str:
        """Take the workspace as it is now as the baseline instead, and return the tree. Raises SnapshotError.

        What changed since `baseline` is then no part of any diff.
        """
        with self._lock:
            try:
                self._baseline = self._latest = self._snapshot(self._require_baseline())
            except SnapshotError as error:
                self._baseline, self._failure = None, error.message
                raise
            return self._baseline.tree

    def turn(self, number: int) -> None:
        """Record the workspace at the end of a conversation turn; a failure is kept for `turn_diffs`."""
        with self._lock:
            before = self._latest
            try:
                baseline = self._require_baseline()
                after = self._snapshot(before or baseline, also=baseline.files)
            except SnapshotError as error:
                self._latest = None
                self._turns.append(_Turn(number, None, None, error.message))
                return
            self._latest = after
            self._turns.append(_Turn(number, before.tree if before else None, after.tree))

    def final(self) -> str:
        """Record the workspace after the agent and return the tree. Raises SnapshotError.

        The tree depends on the baseline and the workspace only, not on the turns recorded between.
        """
        with self._lock:
            return self._snapshot(self._require_baseline()).tree

    def diff(self, before: str, after: str) -> DiffResult:
        """Return the unified diff of two trees; a failure is told in the result."""
        with self._lock:
            return diff_trees(self._repository, before, after, self._max_diff_bytes)

    def patch(self, before: str, after: str, target: Path) -> int:
        """Write the change as `git apply` takes it, and return its bytes; no change, no file. Raises SnapshotError."""
        with self._lock:
            return write_patch(self._repository, before, after, target)

    def capture(self, patch: Path | None = None) -> Capture:
        """Return the change since the baseline and write the patch when there is one; never raises SnapshotError."""
        try:
            after = self.final()
            assert self._baseline is not None
            diff = self.diff(self._baseline.tree, after)
            size = self.patch(self._baseline.tree, after, patch) if patch and diff.text else 0
        except SnapshotError as error:
            return Capture(DiffResult(None, error=error.message))
        return Capture(diff, size)

    def turn_diffs(self) -> Iterator[TurnDiffResult]:
        """Yield the change of each recorded turn in order, one at a time because each may be large."""
        numbers = {turn.number for turn in self._turns}
        for turn in list(self._turns):
            if turn.after is None:
                yield TurnDiffResult(turn.number, DiffResult(None, error=turn.error))
            elif turn.before is None:
                # A diff against an older tree would show the changes of other turns too.
                missing = turn.number - 1 if turn.number - 1 in numbers else "before"
                yield TurnDiffResult(
                    turn.number, DiffResult(None, error=f"the snapshot at the end of turn {missing} is missing")
                )
            else:
                yield TurnDiffResult(turn.number, self.diff(turn.before, turn.after))

    def warnings(self) -> list[str]:
        """Say which paths no snapshot can hold, at most 20 of them."""
        shown = sorted(path.decode("utf-8", errors="replace") for path in self._skipped)
        lines = [f"'{path}' is not part of the diff: git refuses the name" for path in shown[:20]]
        return lines if len(shown) <= 20 else [*lines, f"… and {len(shown) - 20} more paths"]

    def cancel(self) -> None:
        """Kill the git command that is running and let all later calls fail."""
        self._repository.cancel()

    def _first_state(self, cache_key: str | None) -> TreeState:
        if self._cache is None or cache_key is None:
            return self._snapshot(NOTHING)
        with self._cache.building(cache_key):
            self._require_workspace()
            entry = self._cache.find(cache_key)
            if entry is None:
                return self._published_state(self._cache, cache_key)
        state = match_paths(Workspace(self.workspace), entry)
        if state is None:
            return self._snapshot(NOTHING)
        self._repository.use_objects_of(entry.objects, entry.index, entry.tree)
        return state

    def _published_state(self, cache: BaselineCache, key: str) -> TreeState:
        state = self._snapshot(NOTHING)
        self._repository.read_tree(state.tree)
        cache.publish(key, self._repository.objects, self._repository.index, state.tree, encode_paths(state))
        return state

    def _require_baseline(self) -> TreeState:
        if self._baseline is None:
            raise SnapshotError(self._failure)
        return self._baseline

    def _require_workspace(self) -> None:
        if self.workspace.is_symlink() or not self.workspace.is_dir():
            raise SnapshotError("the workspace directory no longer exists")

    def _snapshot(self, state: TreeState, also: Collection[bytes] = ()) -> TreeState:
        """Take a tree, again when files came and went while git was reading them."""
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(GitCommandError):
                return self._take(state, also)
        return self._take(state, also)

    def _take(self, state: TreeState, also: Collection[bytes]) -> TreeState:
        self._require_workspace()
        repository, workspace = self._repository, Workspace(self.workspace)
        looked_at = now()
        repository.read_tree(state.tree)
        links, gone = refresh_links(workspace, state.links)
        changes = compare_known(workspace, state, also)
        # Dropped before git looks for new files: a known path would hide the directory or repository in its place.
        repository.drop([*gone, *changes.drop])
        repository.add_links({path: commit for path, commit in links.items() if commit != state.links[path]})
        add_others(workspace, repository.others(), changes)
        repository.add_links(changes.new_links)
        repository.stage(changes.stage)
        self._skipped.update(changes.skipped)
        tree = state.tree if repository.holds(state.tree) else repository.write_tree()
        return TreeState(tree, changes.files, {**links, **changes.new_links}, looked_at)
