"""The directories of one trial: its workspace and, beside it, what the agent must not find inside."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vally import WorkspaceChoice
from vally_backend_local.copying import remove_tree
from vally_backend_local.failures import SetupError, from_os_error
from vally_backend_local.kept_workspaces import KeptWorkspaces
from vally_backend_local.scratch import scratch_directory
from vally_backend_local.spare_directories import SpareDirectories


@dataclass(frozen=True)
class TrialDirectories:
    """Real paths. The private directory `trial` has mode 0700; what lies in it is made when it is first needed.

    `aside` is for what confined processes see under another name only, such as their `/tmp`: a name that they could
    change would be followed when the next of them is started. It is made when it is first needed, too.

    Around a workspace of vally's own lies a directory with nothing else in it, so that `..` leads an agent to no other
    trial, and to nothing of the user's.

    `removable` are the directories that go with the trial, `at_death` those that go when vally dies meanwhile, the
    scratch directory of the run among them. In those of `owned` only its processes work.
    """

    workspace: Path
    trial: Path
    aside: Path
    removable: tuple[Path, ...]
    at_death: tuple[Path, ...]
    owned: tuple[Path, ...]

    @property
    def home(self) -> Path:
        return self.trial / "home"

    @property
    def tmp(self) -> Path:
        return self.trial / "tmp"

    @property
    def assets(self) -> Path:
        return self.trial / "assets"

    @property
    def git(self) -> Path:
        return self.trial / "git"

    @property
    def run(self) -> Path:
        return self.trial / "run"

    def fresh_aside(self) -> Path:
        """Make a directory in `aside`."""
        self.aside.mkdir(mode=0o700, exist_ok=True)
        return fresh_directory(self.aside)

    def make_private(self) -> None:
        """Make the directories that processes of the trial may expect."""
        for path in (self.home, self.tmp, self.run):
            path.mkdir(mode=0o700, exist_ok=True)


def fresh_directory(parent: Path) -> Path:
    """Make a directory under a name that nobody can have prepared."""
    path = parent / secrets.token_hex(8)
    path.mkdir(mode=0o700)
    return path


def make_directories(
    choice: WorkspaceChoice,
    temporary: Path,
    run_token: str,
    kept: KeptWorkspaces,
    spare: SpareDirectories,
    *,
    keep: bool,
) -> TrialDirectories:
    """Make the directories of a trial; their names tell nothing about it. Raises SetupError.

    `temporary` is the real path of the system's temporary directory; `keep` leaves the workspace there afterwards.
    """
    token = run_token + secrets.token_hex(4)
    trial = temporary / f"vally-trial-{token}"
    around = temporary / f"vally-around-{token}"
    try:
        spare.make(trial)
        try:
            workspace = _workspace(choice, around / f"vally-eval-{token}", kept, spare)
        except BaseException:
            remove_directories([around, trial])
            raise
    except OSError as error:
        raise from_os_error(error, "make the directories of the trial") from error
    aside = trial.with_name(f"{trial.name}-aside")
    goes = choice.path is None and not (keep or choice.keep)
    removable = (around, trial, aside) if goes else (trial, aside)
    return TrialDirectories(
        workspace=workspace,
        trial=trial,
        aside=aside,
        removable=removable,
        at_death=(*removable, scratch_directory(temporary, run_token)),
        owned=(trial,) if choice.in_place else (around if choice.path is None else workspace, trial),
    )


def _workspace(choice: WorkspaceChoice, temporary: Path, kept: KeptWorkspaces, spare: SpareDirectories) -> Path:
    if choice.path is None:
        spare.make(temporary.parent)
        spare.make(temporary)
        return temporary
    if not choice.in_place:
        kept.claim(choice.path, choice.root or choice.path.parent)
    elif not choice.path.is_dir():
        raise SetupError(f"workspace '{choice.path}' is not a directory", code="workspace-not-found")
    return choice.path.resolve()


def remove_directories(paths: Sequence[Path]) -> list[str]:
    """Remove directories and say which stayed, and why."""
    left = []
    for path in paths:
        try:
            remove_tree(path)
        except OSError as error:
            left.append(f"'{path}' could not be removed: {error.strerror or error}")
    return left
