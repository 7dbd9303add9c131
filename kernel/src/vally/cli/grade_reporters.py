"""Reporters that listen to `vally grade`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from vally._version import __version__
from vally.cli.messages import print_warning, say
from vally.cli.run_choices import RunChoices
from vally.model.jsonio import encode_line, timestamp
from vally.model.trajectory import dump_record
from vally.run.calling import described
from vally.run.reporters import ReporterBoard, active_reporters
from vally.run.reporting import EvalComplete, RunComplete, RunStart, TrialDone
from vally.run.results_file import RESULTS_NAME

if TYPE_CHECKING:
    from vally.cli.context import CliContext
    from vally.host import PluginHost
    from vally.model.evalspec import Project
    from vally.model.results import RunSummary, TrialResult
    from vally.run.reporting import PlannedEval
    from vally.run.trial import TrialItem

KIND = "grade"


class GradeReporters:
    """The reporters whose records do not keep them to other kinds of runs.

    Reporters find the graded records in a temporary directory. It is kept when one of them wrote something there.
    """

    def __init__(self, host: PluginHost, context: CliContext, options: Mapping[str, Any], project: Project) -> None:
        self._context = context
        self._options = options
        self._project = project
        self._board = ReporterBoard(active_reporters(host, {}, _failed, kind=KIND))
        self._directory: Path
        self._completed = 0
        self._total = 0

    @property
    def active(self) -> bool:
        """Whether there is any."""
        return bool(self._board.feeds)

    @asynccontextmanager
    async def listening(self, run_id: str, evals: Sequence[PlannedEval], total: int) -> AsyncIterator[None]:
        """Let the reporters work while the body lasts."""
        if not self.active:
            yield
            return
        self._total = total
        with _directory() as self._directory:
            async with anyio.create_task_group() as group:
                for feed in self._board.feeds:
                    group.start_soon(feed.run)
                await self._board.send("on_run_start", self._start(run_id, evals))
                yield
                group.cancel_scope.cancel()

    def _start(self, run_id: str, evals: Sequence[PlannedEval]) -> RunStart:
        return RunStart(
            run_id=run_id,
            kind=KIND,
            evals=tuple(evals),
            total_items=self._total,
            workers=self._options["workers"],
            metadata=self._project.metadata,
            version=__version__,
            run_dir=self._directory,
            run_dir_display=self._directory.as_posix(),
            started_at=timestamp(),
            options=RunChoices.of(self._options).reporting(self._context),
            environ=self._context.environ,
        )

    async def trial(self, item: TrialItem, result: TrialResult, line: bytes, passed: bool | None) -> None:
        """Tell of one graded trial."""
        if not self.active:
            return
        with (self._directory / RESULTS_NAME).open("ab") as file:
            file.write(line)
        self._completed += 1
        done = TrialDone(
            item=item, result=result, line=line, passed=passed, completed=self._completed, total=self._total
        )
        await self._board.send("on_trial_result", done)

    async def finish(self, evals: Sequence[PlannedEval], summary: RunSummary, code: int) -> dict[str, Path]:
        """Tell that all is over; returns the files that were written, by label."""
        if not self.active:
            return {}
        for planned, verdict in zip(evals, summary.evals, strict=True):
            await self._board.send("on_eval_complete", EvalComplete(eval=planned, summary=verdict))
        line = encode_line(dump_record(summary))
        with (self._directory / RESULTS_NAME).open("ab") as file:
            file.write(line)
        return await self._board.finish(
            lambda artifacts: RunComplete(
                summary=summary,
                line=line,
                status="completed",
                run_dir=self._directory,
                run_dir_display=self._directory.as_posix(),
                artifacts=artifacts,
                exit_code=code,
            ),
            lambda name: say(f"running reporter {name}…"),
        )


@contextmanager
def _directory() -> Iterator[Path]:
    """A directory that is removed afterwards, unless somebody put something there beside the records."""
    path = Path(tempfile.mkdtemp(prefix="vally-grade-")).resolve()
    (path / RESULTS_NAME).touch()
    try:
        yield path
    finally:
        if {item.name for item in path.iterdir()} <= {RESULTS_NAME}:
            shutil.rmtree(path, ignore_errors=True)
        else:
            say(f"Reports: {path.as_posix()}")


def _failed(name: str, error: Exception) -> None:
    print_warning(f"reporter '{name}' failed and is disabled: {described(error)}")
