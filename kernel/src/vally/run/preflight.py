"""Asking every executor and judge of a plan once whether it can start."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from vally.errors import VallyError
from vally.model.jsonio import canonical_json, plain_value
from vally.run.calling import described, invoke
from vally.run.judge_checks import judging_entries
from vally.run.prepared_graders import prepare_entries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vally.host import PluginHost
    from vally.run.judges import JudgePool
    from vally.run.plan import EvalPlan, Plan
    from vally.run.preparation import Preparation

LIMIT_S = 120.0
AT_ONCE = 4

Probe = Callable[[], Awaitable[Any]]


async def preflight(
    plan: Plan, host: PluginHost, ready: Preparation, judges: JudgePool, *, skip_grade: bool = False
) -> None:
    """Ask all; raises `VallyError` with one line for each that cannot start, after shutting everything down."""
    probes = dict(_executors(plan, ready))
    probes |= dict(_judges(plan, host, judges, skip_grade))
    failures: dict[str, str] = {}
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def ask(label: str, probe: Probe) -> None:
        async with limiter:
            try:
                with anyio.fail_after(LIMIT_S):
                    await probe()
            except TimeoutError:
                failures[label] = f"did not answer within {LIMIT_S:g}s"
            except VallyError as error:
                failures[label] = error.message
            except Exception as error:
                failures[label] = described(error)

    async with anyio.create_task_group() as group:
        for label, probe in probes.items():
            group.start_soon(ask, label, probe)
    if failures:
        await _end(ready, judges)
        lines = [f"{label}: {failures[label]}" for label in probes if label in failures]
        raise VallyError(f"{len(lines)} of {len(probes)} cannot start", where="--preflight", hints=lines)


def _executors(plan: Plan, ready: Preparation) -> Iterator[tuple[str, Probe]]:
    """One probe per executor and config."""
    seen: dict[tuple[str, str], str] = {}
    for evaluation in plan.evals:
        name = evaluation.executor.name
        key = (name, canonical_json(plain_value(evaluation.executor.config).value))
        executor = ready.executor(evaluation)
        probe = getattr(executor.instance, "preflight", None)
        if probe is None or key in seen:
            continue
        others = sum(1 for known, _ in seen if known == name)
        seen[key] = f"executor '{name}'" + (f" ({evaluation.planned.eval_file_path})" if others else "")
        yield seen[key], partial(invoke, probe, ready.config(evaluation), blocking=executor.record.blocking)


def _judges(plan: Plan, host: PluginHost, judges: JudgePool, skip_grade: bool) -> Iterator[tuple[str, Probe]]:
    """One probe per judge and model; simulated users ask theirs although nothing is graded."""
    for evaluation in plan.evals:
        provider = evaluation.spec.defaults.judge_provider
        graded = () if skip_grade else _models(evaluation, host)
        for model in (*graded, *_models_of_users(evaluation)):
            record = judges.record(provider)
            address = f" at {provider.base_url}" if provider is not None and provider.base_url else ""
            yield f"judge '{record.name}'{address}, model '{model}'", partial(_ask_judge, judges, provider, model)


async def _ask_judge(judges: JudgePool, provider: Any, model: str) -> None:
    record, judge = await judges.judge(provider)
    probe = getattr(judge, "preflight", None)
    if probe is not None:
        await invoke(probe, model, blocking=record.blocking)


def _models(evaluation: EvalPlan, host: PluginHost) -> Iterator[str]:
    """The models that the graders of an eval ask: those in their configs, else that of the run."""
    default = evaluation.template["judge"].model
    entries = judging_entries(evaluation, host)
    for prepared in prepare_entries(host, entries, evaluation.spec.spec_dir, _ignore):
        named = list(_named_models(prepared.config))
        yield from named or [default]


def _models_of_users(evaluation: EvalPlan) -> Iterator[str]:
    for stimulus in evaluation.stimuli:
        simulation: Mapping[str, Any] = stimulus.simulation or {}
        if simulation.get("user"):
            yield simulation["user"].get("model") or evaluation.template["judge"].model


def _named_models(config: Any) -> Iterator[str]:
    for item in [getattr(config, "model", None), *(getattr(config, "models", None) or ())]:
        model = item if isinstance(item, str) else getattr(item, "model", None)
        if isinstance(model, str):
            yield model


def _ignore(_: str) -> None:
    return None


async def _end(ready: Preparation, judges: JudgePool) -> None:
    """Shut down what was started for nothing; what fails then does not matter any more."""
    executors: Mapping[str, Any] = ready.executors
    with anyio.CancelScope(shield=True), anyio.move_on_after(30):
        await judges.shutdown()
        for name, executor in executors.items():
            try:
                await invoke(executor.instance.shutdown, blocking=executor.record.blocking)
            except Exception as error:
                # The run is over, and why is told; this matters only to people who debug an executor.
                logging.getLogger("vally.run").debug("executor '%s' did not shut down", name, exc_info=error)
