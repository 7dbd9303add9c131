"""One grader entry applied to one trajectory: view, call, and the mapping of what goes wrong."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from vally.errors import GraderError
from vally.model.config import config_evidence
from vally.run.calling import call_tamed, invoke
from vally.run.entry_results import checked_result, finish_result
from vally.run.inputs import GraderInput
from vally.text.regex import InvalidRegex, RegexTimeout

if TYPE_CHECKING:
    import anyio

    from vally.host import PluginHost
    from vally.model.evalspec import GraderEntry
    from vally.model.results import GraderResult
    from vally.model.views import View
    from vally.run.grading import GradingRequest
    from vally.run.prepared_graders import PreparedEntry
    from vally.run.repo_snapshot import RepoSnapshot


@dataclass(slots=True)
class GradingFacts:
    """What all entries of one trajectory share. `deadline` is a `time.monotonic()` value."""

    request: GradingRequest
    deadline: float | None = None
    limiter: anyio.CapacityLimiter | None = None
    repo: RepoSnapshot | None = None
    _views: dict[tuple[int | None, str], View] = field(default_factory=dict)
    _diffs: dict[int | None, tuple[str | None, str | None]] = field(default_factory=dict)

    def view(self, entry: GraderEntry) -> View:
        """The part of the trajectory that an entry is about; entries about the same part share it."""
        from vally.model.views import narrow

        key = (entry.turn, repr(entry.scope))
        if key not in self._views:
            turns = len(self.request.stimulus.turns)
            self._views[key] = narrow(self.request.trajectory, turns, entry.turn, entry.scope)
        return self._views[key]

    def diff(self, turn: int | None) -> tuple[str | None, str | None]:
        """The diff of the run or of a turn, and the reason when there is none; its file is read once."""
        from vally.run.diffs import view_diff

        if turn not in self._diffs:
            self._diffs[turn] = view_diff(self.request, turn)
        return self._diffs[turn]


class EntryGrader:
    """Applies one prepared entry; whatever the grader does becomes a result with all fields of the kernel."""

    def __init__(self, facts: GradingFacts, prepared: PreparedEntry) -> None:
        self._facts = facts
        self._request = facts.request
        self._prepared = prepared

    async def result(self) -> GraderResult:
        """The result of any grader; a sync one runs in a worker thread unless its record says otherwise."""
        prepared = self._prepared
        try:
            view = self._view()
            if view.empty_scope and not await self._invoke("asserts_absence", prepared.config):
                return self._finished(self._empty_scope())
            return self._finished(checked_result(await self._invoke("grade", self._input(view)), prepared))
        except Exception as error:
            return self.failed(error)

    def attempt(self) -> GraderResult | Awaitable[Any]:
        """Call a sync grader in this thread: its result, or what it returned when that is to be awaited."""
        prepared = self._prepared
        try:
            view = self._view()
            if view.empty_scope and not self._asserts_absence():
                return self._finished(self._empty_scope())
            value = call_tamed(prepared.grader.grade, self._input(view))
            return value if inspect.isawaitable(value) else self._finished(checked_result(value, prepared))
        except Exception as error:
            return self.failed(error)

    async def awaited(self, value: Awaitable[Any]) -> GraderResult:
        """The result behind what `attempt` left to be awaited."""
        try:
            return self._finished(checked_result(await invoke(lambda: value, blocking=False), self._prepared))
        except Exception as error:
            return self.failed(error)

    def unfinished(self, evidence: str) -> GraderResult:
        """The result of a grader that the budget of the trial left no time for."""
        return self._finished(self._prepared.error(evidence, kind="deadline"))

    async def _invoke(self, name: str, *args: Any) -> Any:
        method = getattr(self._prepared.grader, name, None)
        record = self._prepared.record
        if method is None or record is None:
            return False
        return await invoke(method, *args, blocking=record.blocking, limiter=self._facts.limiter)

    def _asserts_absence(self) -> bool:
        method = getattr(self._prepared.grader, "asserts_absence", None)
        return method is not None and bool(call_tamed(method, self._prepared.config))

    def _view(self) -> View:
        """What the entry sees; raises `_Early` when there is nothing to call the grader with."""
        prepared = self._prepared
        if prepared.problem is not None:
            raise _Early(prepared.error(prepared.problem, kind="config"))
        if self._request.trajectory is None:
            raise _Early(prepared.error("Grader execution error: Missing trajectory", kind="exception"))
        view = self._facts.view(prepared.entry)
        if view.problem is not None:
            raise _Early(self._fail(view.problem))
        return view

    def failed(self, error: Exception) -> GraderResult:
        """The result for what came out of a grader instead of one."""
        prepared = self._prepared
        if isinstance(error, _Early):
            outcome = error.result
        elif isinstance(error, RegexTimeout):
            outcome = prepared.error(str(error), kind="regex-timeout")
        elif isinstance(error, InvalidRegex):
            outcome = self._fail(str(error))
        elif isinstance(error, GraderError):
            outcome = prepared.error(error.message, kind=error.kind)
            if error.details and outcome.metadata is not None:
                outcome.metadata = {**error.details, **outcome.metadata}
        else:
            self._request.log.debug("grader '%s' raised", prepared.entry.type, exc_info=error)
            outcome = prepared.error(f"Grader execution error: {_text(error)}", kind="exception")
        return self._finished(outcome)

    def _finished(self, result: GraderResult) -> GraderResult:
        try:
            return finish_result(result, self._prepared, judge=self._judge_metadata())
        except Exception as error:
            problem = self._prepared.error(f"Grader returned an invalid result: {_text(error)}", kind="exception")
            return finish_result(problem, self._prepared)

    def _judge_metadata(self) -> Mapping[str, object]:
        """What the judge has to say on every result of a grader that may ask it."""
        record = self._prepared.record
        return getattr(self._request.judge, "result_metadata", {}) if record and record.requires_judge else {}

    def _empty_scope(self) -> GraderResult:
        return self._fail(f"No events in agent scope '{_scope_text(self._prepared.entry.scope)}'")

    def _fail(self, evidence: str) -> GraderResult:
        from vally.model.results import GraderResult

        return GraderResult.verdict(False, evidence, name=self._prepared.entry.type, kind=self._prepared.result_kind)

    def _input(self, view: View) -> GraderInput[Any]:
        from vally.run.read_root import ReadRoot

        request, prepared = self._request, self._prepared
        record = prepared.record
        assert record is not None
        diff, problem = self._facts.diff(prepared.entry.turn)
        return GraderInput(
            trajectory=view.trajectory,
            full_trajectory=request.trajectory,
            stimulus=request.stimulus,
            config=prepared.config,
            turn=prepared.entry.turn,
            scope=prepared.entry.scope,
            files=ReadRoot(request.trajectory),
            judge=request.judge if record.requires_judge else None,
            runner=request.runner,
            env=request.env,
            spec_dir=request.spec_dir,
            run_dir=request.run_dir,
            diff=diff,
            diff_problem=problem,
            repo=self._facts.repo if "repo" in config_evidence(prepared.config) else None,
            seed=request.seed,
            log=logging.getLogger(f"vally.grader.{record.name}"),
            warn=partial(_warn_once, request.host, record.name),
            deadline=self._facts.deadline,
        )


class _Early(Exception):
    """A result that is known before the grader is called."""

    def __init__(self, result: GraderResult) -> None:
        super().__init__()
        self.result = result


def _text(error: Exception) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:
        return type(error).__name__


def _warn_once(host: PluginHost, keyword: str, text: str) -> None:
    logger = logging.getLogger(f"vally.grader.{keyword}")
    host.memo(("warned", keyword, text), lambda: logger.warning("%s", text))


def _scope_text(scope: object) -> str:
    from vally.text.display import describe_grader_value

    return describe_grader_value(scope.get("agent") if isinstance(scope, dict) else scope)
