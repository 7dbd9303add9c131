"""What became of a trial elsewhere, with its files put where the run has them."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from vally import BackendError, ErrorInfo, ExportedFiles, Redactor, Selection, TrialOutcome
from vally_backend_local import LocalOutcome
from vally_backend_ray.codes import LOST
from vally_backend_ray.spool import walked

PATCH = "workspace.patch"
ARTIFACTS = "artifacts"
_FACTS = tuple(field.name for field in fields(LocalOutcome) if field.name != "clean")


async def _not_available(_: Selection, __: Path) -> ExportedFiles:
    raise BackendError("workspace is not available")


@dataclass
class RemoteOutcome(LocalOutcome):
    """See `TrialOutcome`; `work_dir` is a path of the machine that the trial ran on, and `export` gets files of it."""

    lost_attempts: int = 0
    backend_name: str = ""
    export: Callable[[Selection, Path], Awaitable[ExportedFiles]] = _not_available

    async def export_workspace(self, selection: Selection, target: Path) -> ExportedFiles:
        """Copy files of the workspace to this machine; only before `cleanup`. Raises `BackendError`."""
        return await self.export(selection, target)

    async def cleanup(self) -> Sequence[str]:
        """Have removed what the trial left; returns warnings, never raises."""
        self.export = _not_available
        return await super().cleanup()


def sent(outcome: TrialOutcome, backend_name: str) -> RemoteOutcome:
    """What the driver gets of the outcome of an inner backend: all but what only the worker can do with it."""
    facts = {name: getattr(outcome, name) for name in _FACTS}
    return RemoteOutcome(**{**facts, "warnings": tuple(outcome.warnings)}, backend_name=backend_name)


def arrived(outcome: RemoteOutcome, losses: Sequence[str]) -> RemoteOutcome:
    """The outcome of a trial that came back, with the losses before it."""
    return replace(outcome, warnings=(*losses, *outcome.warnings), lost_attempts=len(losses))


def lost(losses: Sequence[str], backend_name: str) -> RemoteOutcome:
    """The outcome of a trial that lost more workers than it may."""
    message = f"{len(losses)} workers were lost with this trial; the last one: {losses[-1]}"
    info = ErrorInfo(message=message, code=LOST, retryable=True, phase="running")
    return RemoteOutcome(
        "error",
        error=info,
        warnings=tuple(losses),
        lost_attempts=len(losses) - 1,
        backend_name=backend_name,
    )


def put_in_place(source: Path, run_dir: Path, output_dir: Path | None, redactor: Redactor) -> None:
    """Move what came back into the run directory; blocks. Raises `OSError`.

    Texts lose the secrets that the driver knows of, as everywhere; artifacts stay as they are.
    """
    artifacts = None if output_dir is None else output_dir / ARTIFACTS
    for path in walked(source):
        target = run_dir / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if artifacts is None or not target.is_relative_to(artifacts):
            _redact(path, redactor)
        shutil.move(path, target)


def _redact(path: Path, redactor: Redactor) -> None:
    if path.is_symlink():
        return
    data = path.read_bytes()
    if path.name == PATCH:
        clean = redactor.patch(data)
    else:
        text = data.decode("utf-8", "surrogateescape")
        clean = redactor.text(text).encode("utf-8", "surrogateescape")
    if clean != data:
        path.write_bytes(clean)
