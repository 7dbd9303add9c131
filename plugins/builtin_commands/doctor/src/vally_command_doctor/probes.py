"""How a plugin of each kind is asked whether it can start; through methods that any plugin may have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vally import (
    DEFAULT_JUDGE_MODEL,
    ConfigInvalid,
    JudgeError,
    JudgeSpec,
    RunContext,
    VallyError,
    invoke,
    print_warning,
)
from vally_command_doctor.findings import MISSING, NEEDS_CONFIG, READY

if TYPE_CHECKING:
    from vally import CliContext, PluginHost, Record


@dataclass(frozen=True, slots=True)
class Answer:
    """What a plugin said."""

    status: str
    detail: str = ""
    hints: Sequence[str] = ()


Probe = Callable[["PluginHost", Any, "CliContext"], Awaitable[Answer]]


async def ask_executor(host: PluginHost, record: Record, context: CliContext) -> Answer:
    """Ask with an empty config; one that needs settings is asked with its `example_configs()`."""
    executor = host.create(record)
    try:
        configure = getattr(executor, "configure", None)
        if configure is not None:
            configure(_run_context(context))
        examples = getattr(executor, "example_configs", None)
        if examples is not None:
            return await _examples(host, record, executor, examples())
        return await _with_config(host, record, executor, {})
    finally:
        await invoke(executor.shutdown, blocking=record.blocking)


async def _with_config(host: PluginHost, record: Record, executor: Any, config: Mapping[str, object]) -> Answer:
    try:
        parsed = host.parse_config(record, config)
        check = getattr(executor, "validate_config", None)
        if check is not None:
            check(config)
    except ConfigInvalid as error:
        return Answer(NEEDS_CONFIG, error.problems[0])
    except (VallyError, ValueError) as error:
        return Answer(NEEDS_CONFIG, getattr(error, "message", None) or str(error))
    probe = getattr(executor, "preflight", None)
    if probe is None:
        return Answer(READY)
    try:
        told = await invoke(probe, parsed, blocking=record.blocking)
    except VallyError as error:
        return Answer(MISSING, error.message, error.hints)
    return Answer(READY, told if isinstance(told, str) else "")


async def _examples(
    host: PluginHost, record: Record, executor: Any, configs: Mapping[str, Mapping[str, object]]
) -> Answer:
    """Ready when it can start with one of its configs."""
    answers = {label: await _with_config(host, record, executor, config) for label, config in configs.items()}
    ready = [label for label, answer in answers.items() if answer.status == READY]
    others = [label for label in answers if label not in ready]
    reasons = [f"{label}: {answers[label].detail}" for label in others]
    if ready:
        return Answer(
            READY, f"with {', '.join(ready)}" + (f"; not with {', '.join(others)}" if others else ""), reasons
        )
    return Answer(NEEDS_CONFIG, f"cannot start as it is with any of {', '.join(others)}", reasons)


async def ask_judge(host: PluginHost, record: Record, context: CliContext) -> Answer:
    """Ask without a provider; one that needs a provider says so."""
    assert isinstance(record, JudgeSpec)
    judge = host.create(record)
    try:
        prepare = getattr(judge, "prepare", None)
        if prepare is not None:
            await invoke(prepare, _run_context(context), blocking=record.blocking)
        return await _configured(record, judge) or await _preflight(record, judge)
    finally:
        await invoke(judge.shutdown, blocking=record.blocking)


async def _configured(record: JudgeSpec, judge: Any) -> Answer | None:
    """Configure it without a provider; the answer when it cannot do without."""
    try:
        await invoke(judge.configure, None, blocking=record.blocking)
    except JudgeError as error:
        if not record.provider_types:
            raise
        return Answer(NEEDS_CONFIG, f"{error!s}, type {' or '.join(record.provider_types)}")
    return None


async def _preflight(record: JudgeSpec, judge: Any) -> Answer:
    try:
        probe = getattr(judge, "preflight", None)
        told = None if probe is None else await invoke(probe, DEFAULT_JUDGE_MODEL, blocking=record.blocking)
    except JudgeError as error:
        return Answer(MISSING, str(error))
    return Answer(READY, told if isinstance(told, str) else "")


async def ask_backend(host: PluginHost, record: Record, context: CliContext) -> Answer:
    """Let it prepare a run of no trials, or ask its `preflight` when it has one."""
    try:
        config = host.parse_config(record, {})
    except ConfigInvalid as error:
        return Answer(NEEDS_CONFIG, error.problems[0])
    backend, run = host.create(record), _run_context(context)
    try:
        probe = getattr(backend, "preflight", None)
        asked = (backend.prepare, {}, run) if probe is None else (probe, config, run)
        told = await invoke(*asked, blocking=record.blocking)
    finally:
        await invoke(backend.shutdown, blocking=record.blocking)
    return Answer(READY, told if isinstance(told, str) else "")


def _run_context(context: CliContext) -> RunContext:
    return RunContext(
        run_id="doctor",
        cache_dir=context.cache_dir,
        project_root=context.cwd,
        process_env=context.environ,
        on_warning=print_warning,
    )


PROBES: Mapping[str, Probe] = {"executor": ask_executor, "judge": ask_judge, "backend": ask_backend}
