"""Removing what a trial left behind; nothing that goes wrong here changes what the trial came to."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.to_thread

from vally import TrialOptions, described
from vally_backend_local.directories import TrialDirectories, remove_directories
from vally_backend_local.preparing import Runners
from vally_backend_local.spare_directories import SpareDirectories
from vally_backend_local.work import call_plugin

PAUSES_S = (1.0, 2.0)
"""Pauses before the second and the third try to remove directories."""


async def clean_up(
    directories: TrialDirectories,
    runners: Runners | None,
    options: TrialOptions,
    *,
    trial_id: str | None,
    keep: bool,
    spare: SpareDirectories | None = None,
) -> list[str]:
    """End the trial's processes, tell the executor, remove the directories; returns warnings and never raises.

    `trial_id` is None when the executor never heard of the trial; `keep` says that the workspace stays. `spare` may
    keep directories that are empty.
    """
    warnings: list[str] = []
    if runners is not None:
        await runners.kill_all()
    if trial_id is not None:
        warnings += await _tell_executor(options, trial_id, keep)
    if spare is not None and directories.workspace.parent in directories.removable:
        spare.keep(directories.workspace)
    left = await _remove([path for path in directories.removable if spare is None or not spare.keep(path)])
    if runners is not None and not left:
        runners.close()
    return warnings + left


async def _tell_executor(options: TrialOptions, trial_id: str, keep: bool) -> list[str]:
    method = getattr(options.executor, "cleanup", None)
    if method is None:
        return []
    record = options.executor_record
    blocking = True if record is None else record.blocking
    limit = options.shutdown_timeout_s
    try:
        # An executor that hangs must not keep the directories of the trial.
        with anyio.fail_after(limit):
            await call_plugin(method, trial_id, preserve_workspace=keep, blocking=blocking)
    except TimeoutError:
        return [f"clean-up of the executor did not end within {limit:g}s"]
    except Exception as error:
        return [f"clean-up of the executor failed: {described(error)}"]
    return []


async def _remove(paths: list[Path]) -> list[str]:
    # Removing empty directories costs less than a thread.
    paths = [path for path in paths if not _is_gone(path)]
    left = await anyio.to_thread.run_sync(remove_directories, paths) if paths else []
    for pause in PAUSES_S:
        if not left:
            break
        await anyio.sleep(pause)
        left = await anyio.to_thread.run_sync(remove_directories, paths)
    return left


def _is_gone(path: Path) -> bool:
    try:
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
