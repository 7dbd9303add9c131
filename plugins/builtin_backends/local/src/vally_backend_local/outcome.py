"""What became of a trial, with the workspace as long as it is needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import anyio.to_thread

from vally import BackendError, ErrorInfo, ExportedFiles, GraderResult, JudgeUsage, Phases, Selection, Trajectory
from vally_backend_local.selection import export_files


async def _nothing_to_clean() -> Sequence[str]:
    return ()


@dataclass
class LocalOutcome:
    """See `TrialOutcome`; `clean` removes what the trial left and is called once."""

    status: Literal["success", "error", "skipped"]
    trajectory: Trajectory | None = None
    grade: GraderResult | None = None
    error: ErrorInfo | None = None
    skip_reason: str | None = None
    retry_after_ms: int | None = None
    work_dir: Path | None = None
    phases: Phases = field(default_factory=Phases)
    warnings: tuple[str, ...] = ()
    judge_usage: JudgeUsage | None = None
    clean: Callable[[], Awaitable[Sequence[str]]] = _nothing_to_clean

    async def export_workspace(self, selection: Selection, target: Path) -> ExportedFiles:
        """Copy files of the workspace; only before `cleanup`. Raises BackendError when it is gone."""
        if self.work_dir is None or not self.work_dir.is_dir():
            raise BackendError("workspace is not available")
        return await anyio.to_thread.run_sync(export_files, self.work_dir, selection, target)

    async def cleanup(self) -> Sequence[str]:
        """Remove what the trial left; returns warnings, never raises."""
        clean, self.clean = self.clean, _nothing_to_clean
        return await clean()
