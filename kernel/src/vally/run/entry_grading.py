"""One grader entry applied to one trajectory: view, call, and the mapping of what goes wrong."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from vally.errors import GraderError
from vally.model.config import config_evidence
from vally.run.calling import invoke
from vally.run.entry_results import checked_result, finish_result
from vally.run.inputs import GraderInput
from vally.text.regex import InvalidRegex, RegexTimeout

if TYPE_CHECKING:
    import anyio

    from vally.host import PluginHost
    from vally.model.results import GraderResult
    from vally.model.views import View
    from vally.run.grading import GradingRequest
    from vally.run.prepared_graders import PreparedEntry
    from vally.run.repo_snapshot import RepoSnapshot


class EntryGrader:
    """Applies one prepared entry; `result()` never raises for what the grader does."""

    def __init__(
        self,
        request: GradingRequest,
        prepared: PreparedEntry,
        deadline: float | None,
        limiter: anyio.CapacityLimiter,
        repo: RepoSnapshot | None = None,
    ) -> None:
        self._request = request
        self._prepared = prepared
        self._deadline = deadline
        self._limiter = limiter
        self._repo = repo

    async def result(self) -> GraderResult:
        """The finished result of this entry, all fields of the kernel filled in."""
        try:
            outcome = await self._graded()
        except RegexTimeout as error:
            outcome = self._prepared.error(str(error), kind="regex-timeout")
        except InvalidRegex as error:
            outcome = self._fail(str(error))
        except GraderError as error:
            outcome = self._prepared.error(error.message, kind=error.kind)
            if error.details and outcome.metadata is not None:
                outcome.metadata = {**error.details, **outcome.metadata}
        except Exception as error:
            self._request.log.debug("grader '%s' raised", self._prepared.entry.type, exc_info=error)
            outcome = self._prepared.error(f"Grader execution error: {_text(error)}", kind="exception")
        try:
            return finish_result(outcome, self._prepared, judge=self._judge_metadata())
        except Exception as error:
            problem = self._prepared.error(f"Grader returned an invalid result: {_text(error)}", kind="exception")
            return finish_result(problem, self._prepared)

    def _judge_metadata(self) -> Mapping[str, object]:
        """What the judge has to say on every result of a grader that may ask it."""
        record = self._prepared.record
        return getattr(self._request.judge, "result_metadata", {}) if record and record.requires_judge else {}

    async def _graded(self) -> GraderResult:
        prepared, entry = self._prepared, self._prepared.entry
        if prepared.problem is not None:
            return prepared.error(prepared.problem, kind="config")
        if self._request.trajectory is None:
            return prepared.error("Grader execution error: Missing trajectory", kind="exception")
        from vally.model.views import narrow

        view = narrow(self._request.trajectory, len(self._request.stimulus.turns), entry.turn, entry.scope)
        if view.problem is not None:
            return self._fail(view.problem)
        if view.empty_scope and not await self._asserts_absence():
            return self._fail(f"No events in agent scope '{_scope_text(entry.scope)}'")
        value = await self._call(self._input(view))
        return checked_result(value, prepared)

    async def _call(self, grader_input: GraderInput[Any]) -> Any:
        record = self._prepared.record
        assert record is not None
        return await invoke(self._prepared.grader.grade, grader_input, blocking=record.blocking, limiter=self._limiter)

    async def _asserts_absence(self) -> bool:
        method = getattr(self._prepared.grader, "asserts_absence", None)
        if method is None:
            return False
        assert self._prepared.record is not None
        blocking = self._prepared.record.blocking
        return bool(await invoke(method, self._prepared.config, blocking=blocking, limiter=self._limiter))

    def _fail(self, evidence: str) -> GraderResult:
        from vally.model.results import GraderResult

        return GraderResult.verdict(False, evidence, name=self._prepared.entry.type, kind=self._prepared.result_kind)

    def _input(self, view: View) -> GraderInput[Any]:
        from vally.run.diffs import view_diff
        from vally.run.read_root import ReadRoot

        request, prepared = self._request, self._prepared
        record = prepared.record
        assert record is not None
        diff, problem = view_diff(request, prepared.entry.turn)
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
            repo=self._repo if "repo" in config_evidence(prepared.config) else None,
            seed=request.seed,
            log=logging.getLogger(f"vally.grader.{record.name}"),
            warn=partial(_warn_once, request.host, record.name),
            deadline=self._deadline,
        )


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
