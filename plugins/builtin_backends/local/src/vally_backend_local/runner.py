"""Starting the processes of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vally import Guardian, LocalProcessRunner
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
            removable_dirs=directories.at_death,
            guardian=guardian,
        )
        self._directories: TrialDirectories | None = directories

    def confined(
        self, argv: list[str], *, cwd: Path | None, env: Mapping[str, str]
    ) -> tuple[list[str], Mapping[str, str]]:
        if self._directories is not None:
            self._directories.make_private()
            self._directories = None
        return argv, env
