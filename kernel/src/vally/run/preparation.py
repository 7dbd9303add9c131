"""Getting ready: executors made, their configs checked, and every need of the plan compared with what they can do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from vally.errors import ConfigInvalid, ExecutorError, PluginError, VallyError
from vally.model.config import config_evidence
from vally.model.evalspec import Diagnostic, ExecutorChoice, Position
from vally.records import Capabilities, ExecutorSpec, GraderSpec
from vally.run.calling import asked, described
from vally.run.prepared_graders import prepare_entries
from vally.text.display import single_line

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.model.evalspec import Stimulus
    from vally.run.plan import EvalPlan, Plan
    from vally.run.trial import RunContext

LOAD_FAILED = "plugin-load-failed"
INVALID_CONFIG = "invalid-executor-config"
OPTION = "--executor"


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
    context: RunContext | None = None

    def executor(self, plan: EvalPlan) -> ReadyExecutor:
        """The executor of one eval."""
        return self.executors[plan.executor.name]

    def config(self, plan: EvalPlan) -> Any:
        """The parsed executor config of one eval."""
        return self.configs[plan.planned.index]


def prepare(
    plan: Plan,
    host: PluginHost,
    *,
    backend_isolates: bool,
    backend: str,
    skip_grade: bool,
    executors: Mapping[str, ReadyExecutor] | None = None,
    context: RunContext | None = None,
) -> Preparation:
    """Make the executors of a plan and find everything that would stop it; all findings at once.

    `executors` are those that the caller made itself; they come before those of plugins. `context` is told to those
    that want to know of the run.
    """
    ready = Preparation(executors=dict(executors or {}), context=context)
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
                place = prepared.entry.position
                _add(ready, place, error.message, code=LOAD_FAILED, hints=error.hints)


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
    _check_network(plan, executor, ready)
    if isolates and not capabilities.isolation:
        need = f"isolation, which backend '{backend}' needs"
        _add(ready, _executor_place(plan), f"executor '{name}' does not support {need}")
    for stimulus in plan.stimuli:
        graders = () if skip_grade else stimulus.graders
        for need, capability in _unmet(plan, stimulus, capabilities, _turn_diffs(host, graders)):
            message = f"executor '{name}' does not support {need} (stimulus '{stimulus.name}')"
            wanted = executor.record.enabled_by.get(capability)
            hints = (f"its config must have {wanted}",) if wanted else ()
            _add(ready, stimulus.position, message, hints=hints)


def _check_network(plan: EvalPlan, executor: ReadyExecutor, ready: Preparation) -> None:
    """Find what needs a network that the backend does not give to agents; the same thing once per eval."""
    check = getattr(executor.instance, "check_network", None)
    if check is None or ready.context is None:
        return
    found: dict[str, None] = {}
    for stimulus in plan.stimuli:
        try:
            asked(check, ready.config(plan), stimulus, ready.context.agent_network)
        except ExecutorError as error:
            found[error.message] = None
        except Exception as error:
            found[described(error)] = None
    for message in found:
        _add(ready, _executor_place(plan), f"executor '{plan.executor.name}': {message}")


def _executor(plan: EvalPlan, host: PluginHost, ready: Preparation) -> ReadyExecutor | None:
    name = plan.executor.name
    if name in ready.executors:
        return ready.executors[name]
    try:
        record = host.require("executor", name)
        assert isinstance(record, ExecutorSpec)
        ready.executors[name] = ReadyExecutor(record, host.create(record))
        configure = getattr(ready.executors[name].instance, "configure", None)
        if configure is not None and ready.context is not None:
            asked(configure, ready.context)
    except (PluginError, ExecutorError) as error:
        code = error.code or "unknown-executor"
        _add(ready, _executor_place(plan), error.message, code=code, hints=error.hints)
        return None
    except Exception as error:
        _add(ready, _executor_place(plan), f"executor '{name}': {described(error)}", code=LOAD_FAILED)
        return None
    return ready.executors[name]


def _configured(plan: EvalPlan, host: PluginHost, executor: ReadyExecutor, ready: Preparation) -> Capabilities | None:
    name, place = plan.executor.name, _executor_place(plan)
    try:
        config = host.parse_config(executor.record, plan.executor.config, spec_dir=plan.spec.spec_dir)
        check = getattr(executor.instance, "validate_config", None)
        if check is not None:
            asked(check, plan.executor.config)
        narrow = getattr(executor.instance, "capabilities_for", None)
        capabilities = executor.record.capabilities if narrow is None else asked(narrow, config)
        if not isinstance(capabilities, Capabilities):
            raise TypeError(f"capabilities_for returned {type(capabilities).__name__}, not Capabilities")
    except ConfigInvalid as error:
        for problem in error.problems:
            hints = filter(None, [error.suggestions.get(problem)])
            _add(ready, place, f"executor '{name}': {problem}", code=INVALID_CONFIG, hints=hints)
        return None
    except VallyError as error:
        code = error.code or INVALID_CONFIG
        _add(ready, place, f"executor '{name}': {error.message}", code=code)
        return None
    except Exception as error:
        _add(ready, place, f"executor '{name}': {described(error)}", code=INVALID_CONFIG)
        return None
    ready.configs[plan.planned.index] = config
    return capabilities


_NEEDS = MappingProxyType(
    {
        "mcp": "MCP servers",
        "skills": "skills",
        "env": "environment variables",
        "attachments": "attachments",
        "model": "a model",
        "reasoning_effort": "a reasoning effort",
        "multi_turn": "more than one turn",
        "turn_completion": "turn diffs",
        "prepared_workspace": "a prepared workspace",
    }
)
"""What an eval needs of each capability, as users read it."""


def _unmet(plan: EvalPlan, stimulus: Stimulus, can: Capabilities, turn_diffs: bool) -> Iterator[tuple[str, str]]:
    """What is needed and cannot be done, and the capability that it takes; empty where it takes several."""
    environment = stimulus.merged_environment
    offered = environment.skills if environment.skills is not None else plan_skills(plan)
    simulation: Mapping[str, Any] = stimulus.simulation or {}
    several = len(stimulus.turns) > 1
    needed = {
        "mcp": environment.mcp_servers,
        "skills": offered,
        "env": environment.env,
        "attachments": stimulus.attachments,
        "model": plan.template["model"] is not None,
        "reasoning_effort": plan.template["reasoning_effort"] is not None,
        "multi_turn": several,
        "turn_completion": several and turn_diffs,
        "prepared_workspace": environment.stages_anything or offered,
    }
    for capability, is_needed in needed.items():
        if is_needed and not getattr(can, capability):
            yield _NEEDS[capability], capability
    if simulation.get("tool_overrides") and not (can.mcp and can.simulation):
        yield "tool overrides", ""
    if simulation.get("user") and not (can.multi_turn and can.simulation):
        yield "a simulated user", ""


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


def _executor_place(plan: EvalPlan) -> Position | None:
    """Where the executor of an eval is named, the start of the file when nobody names one; None for the option."""
    named = plan.spec.defaults.executor
    if plan.executor.name != (named or ExecutorChoice()).name:
        return None
    start = Position(file=plan.planned.eval_file_path, line=1, column=1)
    return start if named is None or named.position is None else named.position


def _add(
    ready: Preparation,
    position: Position | None,
    message: str,
    *,
    code: str = "unsupported-option",
    hints: Iterable[str] = (),
) -> None:
    finding = Diagnostic(
        code=code,
        level="error",
        message=message,
        file=position.file if position else OPTION,
        line=position.line if position else None,
        column=position.column if position else None,
        hint="\n".join(map(single_line, hints)) or None,
    )
    if finding not in ready.diagnostics:
        ready.diagnostics.append(finding)
