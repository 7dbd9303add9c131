"""Getting ready: executors made, their configs checked, and every need of the plan compared with what they can do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vally.errors import ConfigInvalid, ExecutorError, PluginError, VallyError
from vally.model.config import config_evidence
from vally.model.evalspec import Diagnostic
from vally.records import Capabilities, ExecutorSpec, GraderSpec
from vally.run.prepared_graders import prepare_entries

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.model.evalspec import Stimulus
    from vally.run.plan import EvalPlan, Plan

LOAD_FAILED = "plugin-load-failed"


@dataclass(frozen=True, slots=True)
class ReadyExecutor:
    """An executor of the run; one object serves all evals that name it."""

    record: ExecutorSpec
    instance: Any


@dataclass(slots=True)
class Preparation:
    """What the run needs of plugins; `diagnostics` with level error mean that it must not start."""

    executors: dict[str, ReadyExecutor] = field(default_factory=dict)
    configs: dict[int, Any] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def executor(self, plan: EvalPlan) -> ReadyExecutor:
        """The executor of one eval."""
        return self.executors[plan.executor.name]

    def config(self, plan: EvalPlan) -> Any:
        """The parsed executor config of one eval."""
        return self.configs[plan.planned.index]


def prepare(plan: Plan, host: PluginHost, *, backend_isolates: bool, backend: str, skip_grade: bool) -> Preparation:
    """Make the executors of a plan and find everything that would stop it; all findings at once."""
    ready = Preparation()
    for evaluation in plan.evals:
        _prepare_eval(evaluation, host, ready, isolates=backend_isolates, backend=backend, skip_grade=skip_grade)
        if not skip_grade:
            _make_graders(evaluation, host, ready)
    return ready


def _make_graders(plan: EvalPlan, host: PluginHost, ready: Preparation) -> None:
    """Make the graders now, because an agent should not run when nobody can grade it."""
    told = {item.message for item in ready.diagnostics}
    for stimulus in plan.stimuli:
        for prepared in prepare_entries(host, stimulus.graders, plan.spec.spec_dir, _ignore):
            error = prepared.unusable
            # Unknown keywords are findings of the spec, which --skip-validate lets through.
            if error is not None and error.code == LOAD_FAILED and error.message not in told:
                told.add(error.message)
                _add(ready, plan, None, error.message, code=LOAD_FAILED, hints=error.hints)


def _ignore(_: str) -> None:
    return None


def _prepare_eval(
    plan: EvalPlan, host: PluginHost, ready: Preparation, *, isolates: bool, backend: str, skip_grade: bool
) -> None:
    executor = _executor(plan, host, ready)
    if executor is None:
        return
    capabilities = _configured(plan, host, executor, ready)
    if capabilities is None:
        return
    name = plan.executor.name
    if isolates and not capabilities.isolation:
        _add(ready, plan, None, f"executor '{name}' does not support isolation, which backend '{backend}' needs")
    for stimulus in plan.stimuli:
        graders = () if skip_grade else stimulus.graders
        for need in _unmet(plan, stimulus, capabilities, _turn_diffs(host, graders)):
            _add(ready, plan, stimulus, f"executor '{name}' does not support {need} (stimulus '{stimulus.name}')")


def _executor(plan: EvalPlan, host: PluginHost, ready: Preparation) -> ReadyExecutor | None:
    name = plan.executor.name
    if name in ready.executors:
        return ready.executors[name]
    try:
        record = host.require("executor", name)
        assert isinstance(record, ExecutorSpec)
        ready.executors[name] = ReadyExecutor(record, host.create(record))
    except (PluginError, ExecutorError) as error:
        _add(ready, plan, None, error.message, code=error.code or "unknown-executor", hints=error.hints)
        return None
    return ready.executors[name]


def _configured(plan: EvalPlan, host: PluginHost, executor: ReadyExecutor, ready: Preparation) -> Capabilities | None:
    name = plan.executor.name
    try:
        config = host.parse_config(executor.record, plan.executor.config)
        check = getattr(executor.instance, "validate_config", None)
        if check is not None:
            check(plan.executor.config)
        narrow = getattr(executor.instance, "capabilities_for", None)
        capabilities: Capabilities = narrow(config) if narrow is not None else executor.record.capabilities
    except ConfigInvalid as error:
        for problem in error.problems:
            _add(ready, plan, None, f"executor '{name}': {problem}", code="invalid-executor-config")
        return None
    except VallyError as error:
        _add(ready, plan, None, f"executor '{name}': {error.message}", code=error.code or "invalid-executor-config")
        return None
    except Exception as error:
        _add(ready, plan, None, f"executor '{name}': {error}", code="invalid-executor-config")
        return None
    ready.configs[plan.planned.index] = config
    return capabilities


def _unmet(plan: EvalPlan, stimulus: Stimulus, can: Capabilities, turn_diffs: bool) -> Iterator[str]:
    environment = stimulus.merged_environment
    offered = environment.skills if environment.skills is not None else plan_skills(plan)
    simulation: Mapping[str, Any] = stimulus.simulation or {}
    several = len(stimulus.turns) > 1
    needs = {
        "MCP servers": bool(environment.mcp_servers) and not can.mcp,
        "skills": bool(offered) and not can.skills,
        "environment variables": bool(environment.env) and not can.env,
        "attachments": bool(stimulus.attachments) and not can.attachments,
        "a model": plan.template["model"] is not None and not can.model,
        "a reasoning effort": plan.template["reasoning_effort"] is not None and not can.reasoning_effort,
        "more than one turn": several and not can.multi_turn,
        "turn diffs": several and turn_diffs and not can.turn_completion,
        "tool overrides": bool(simulation.get("tool_overrides")) and not (can.mcp and can.simulation),
        "a simulated user": bool(simulation.get("user")) and not (can.multi_turn and can.simulation),
        "a prepared workspace": bool(environment.stages_anything or offered) and not can.prepared_workspace,
    }
    yield from (need for need, unmet in needs.items() if unmet)


def plan_skills(plan: EvalPlan) -> tuple[str, ...]:
    """Names of the skills that an eval offers to stimuli of which no layer declares any."""
    return plan.planned.skills


def _turn_diffs(host: PluginHost, entries: Any) -> bool:
    return any(
        entry.turn is not None and "turn-diff" in entry_evidence(host, entry.type, entry.config) for entry in entries
    )


def entry_evidence(host: PluginHost, keyword: str, config: Mapping[str, object]) -> frozenset[str]:
    """What an entry reads beside the trajectory: `diff`, `turn-diff`, `golden_patch`, `repo`; empty when unknown."""
    record = host.get("grader", keyword)
    if not isinstance(record, GraderSpec):
        return frozenset()
    try:
        parsed = host.parse_config(record, config, lenient=True)
    except VallyError:
        return frozenset()
    return config_evidence(parsed)


def _add(
    ready: Preparation,
    plan: EvalPlan,
    stimulus: Stimulus | None,
    message: str,
    *,
    code: str = "unsupported-option",
    hints: tuple[str, ...] = (),
) -> None:
    position = stimulus.position if stimulus else None
    finding = Diagnostic(
        code=code,
        level="error",
        message=message,
        file=position.file if position else plan.planned.eval_file_path,
        line=position.line if position else None,
        column=position.column if position else None,
        hint="\n".join(hints) or None,
    )
    if finding not in ready.diagnostics:
        ready.diagnostics.append(finding)
