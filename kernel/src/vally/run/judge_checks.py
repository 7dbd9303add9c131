"""What a plan needs of judges, checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vally.errors import PluginError, VallyError
from vally.records import GraderSpec

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.model.evalspec import GraderEntry
    from vally.run.judges import JudgePool
    from vally.run.plan import EvalPlan, Plan


@dataclass(frozen=True, slots=True)
class JudgeProblem:
    """Why the graders of an eval could not ask their judge: one line, a code, and what to do."""

    message: str
    code: str
    hints: tuple[str, ...]


def judge_problems(plan: Plan, host: PluginHost, pool: JudgePool) -> list[JudgeProblem]:
    """One problem per eval whose judge is not installed, or whose credentials are not there."""
    return list(_problems(plan, host, pool))


def _problems(plan: Plan, host: PluginHost, pool: JudgePool) -> Iterator[JudgeProblem]:
    for evaluation in plan.evals:
        keyword = min((entry.type for entry in judging_entries(evaluation, host)), default=None)
        if keyword is None:
            continue
        where, provider = evaluation.planned.eval_file_path, evaluation.spec.defaults.judge_provider
        try:
            pool.make(provider)
        except PluginError as error:
            hint = "install a judge plugin, remove the grader, or run with --skip-grade"
            message = f"{where}: grader '{keyword}' needs a judge: {error.message}"
            code = error.code or "unknown-judge"
            yield JudgeProblem(message, code, (hint,) if code == "unknown-judge" else error.hints)
            continue
        try:
            pool.resolved(provider)
        except VallyError as error:
            message = f"{where}: defaults.judge_provider.{error.where}: {error.message}"
            yield JudgeProblem(message, "judge-credentials", error.hints)


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
