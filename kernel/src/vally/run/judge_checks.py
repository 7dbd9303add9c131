"""What a plan needs of judges, checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vally.errors import PluginError, VallyError
from vally.records import GraderSpec

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.model.evalspec import GraderEntry
    from vally.run.judges import JudgePool
    from vally.run.plan import EvalPlan, Plan


def judge_problems(plan: Plan, host: PluginHost, pool: JudgePool, *, skip_grade: bool = False) -> list[VallyError]:
    """One error per eval whose judge is not installed, or whose credentials are not there.

    Graders ask a judge unless the run does not grade; simulated users ask one always.
    """
    return list(_problems(plan, host, pool, skip_grade))


def _problems(plan: Plan, host: PluginHost, pool: JudgePool, skip_grade: bool) -> Iterator[VallyError]:
    for evaluation in plan.evals:
        who, hint = _who_asks(evaluation, host, skip_grade)
        if who is None:
            continue
        where, provider = evaluation.planned.eval_file_path, evaluation.spec.defaults.judge_provider
        try:
            pool.make(provider)
        except PluginError as error:
            message = f"{where}: {who} needs a judge: {error.message}"
            code = error.code or "unknown-judge"
            yield VallyError(message, code=code, hints=(hint,) if code == "unknown-judge" else error.hints)
            continue
        try:
            pool.resolved(provider)
        except VallyError as error:
            message = f"{where}: defaults.judge_provider.{error.where}: {error.message}"
            if skip_grade:
                message = f"{where}: {who} needs a judge: {error.message}"
            yield VallyError(message, code="judge-credentials", hints=error.hints)


def _who_asks(evaluation: EvalPlan, host: PluginHost, skip_grade: bool) -> tuple[str | None, str]:
    """What of an eval asks a judge, and what to do when there is none; None when nothing does."""
    keyword = None if skip_grade else min((entry.type for entry in judging_entries(evaluation, host)), default=None)
    if keyword is not None:
        return f"grader '{keyword}'", "install a judge plugin, remove the grader, or run with --skip-grade"
    simulated = (stimulus.name for stimulus in evaluation.stimuli if (stimulus.simulation or {}).get("user"))
    name = next(simulated, None)
    if name is None:
        return None, ""
    return f"simulation.user of stimulus '{name}'", "install a judge plugin, or remove the simulated user"


def judge_notices(plan: Plan, host: PluginHost, pool: JudgePool) -> list[str]:
    """What the judges that a plan may ask say about themselves, each once; none of one that is not installed."""
    notices = []
    for evaluation in plan.evals:
        if judging_entries(evaluation, host):
            try:
                notices.append(pool.record(evaluation.spec.defaults.judge_provider).notice)
            except PluginError:
                continue
    return list(dict.fromkeys(notice for notice in notices if notice is not None))


def judging_entries(evaluation: EvalPlan, host: PluginHost) -> list[GraderEntry]:
    """The grader entries of an eval that ask a judge."""
    return [entry for stimulus in evaluation.stimuli for entry in stimulus.graders if _needs_judge(host, entry.type)]


def _needs_judge(host: PluginHost, keyword: str) -> bool:
    record = host.get("grader", keyword)
    return isinstance(record, GraderSpec) and record.requires_judge
