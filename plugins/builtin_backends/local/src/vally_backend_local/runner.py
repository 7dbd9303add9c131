"""Starting the processes of a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vally import Completed, Guardian, LocalProcessRunner
from vally_backend_local.directories import TrialDirectories


class TrialRunner(LocalProcessRunner):
    """The runner of one trial; the private directories appear with its first process, not before."""

    def __init__(
        self, trial_id: str, env: Mapping[str, str], directories: TrialDirectories, guardian: Guardian | None
    ) -> None:
        super().__init__(
            trial_id,
            env,
            cwd=directories.workspace,
            owned_dirs=directories.owned,
            removable_dirs=directories.removable,
            guardian=guardian,
        )
        self._directories: TrialDirectories | None = directories

    def wrap(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        self._make_directories()
        return super().wrap(argv, cwd=cwd, env=env)

    async def start(self, argv: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Any:
        self._make_directories()
        return await super().start(argv, cwd=cwd, env=env)

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float | None = None,
        max_bytes: int = 10 * 2**20,
    ) -> Completed:
        self._make_directories()
        return await super().run(argv, cwd=cwd, env=env, stdin=stdin, timeout=timeout, max_bytes=max_bytes)

    def _make_directories(self) -> None:
        if self._directories is not None:
            self._directories.make_private()
            self._directories = None
