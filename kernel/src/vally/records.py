"""Records that plugins yield, one per thing they provide, and the protocols of the objects their factories make."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

    from vally.foreign import ExportRequest, ExportResult, ForeignSpec, ProviderContext
    from vally.model.evalspec import ProviderConfig, Stimulus
    from vally.model.results import GraderResult
    from vally.model.trajectory import Trajectory
    from vally.run.inputs import CompareInput, CompareResult, ExecutorOptions, GraderInput
    from vally.run.judging import JudgeReply, JudgeRequest
    from vally.run.reporting import Diagnostics, EvalComplete, RunComplete, RunStart, TrialDone, TrialPhase, TrialStart
    from vally.run.trial import GradeOutcome, GradeRequest, RunContext, TrialItem, TrialOptions, TrialOutcome

API_VERSION = 1
"""Version of the plugin API: names, signatures, record fields and protocol methods are only added within it."""

NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")

Factory = str | Callable[[], object]
"""`package.module:attribute`, imported at first use, or the callable itself (single-file plugins)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an executor can do; a stimulus that needs more is refused before the run starts."""

    prepared_workspace: bool = True
    model: bool = True
    multi_turn: bool = False
    turn_completion: bool = False
    mcp: bool = False
    skills: bool = False
    env: bool = False
    attachments: bool = False
    simulation: bool = False
    reasoning_effort: bool = False
    isolation: bool = False
    session_log: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What every kind of record has.

    `summary` is one line of at most 100 characters without a final full stop. `config` is the pydantic model of the
    config mapping (or its import string); None means that the mapping must be empty. `blocking=False` promises that
    sync methods return within 50 ms, so that they run in the event loop.
    """

    name: str
    summary: str
    factory: Factory
    config: str | type[BaseModel] | None = None
    blocking: bool = True
    docs: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderSpec(Record):
    """One grader keyword and its facts.

    `constraints` maps constraint keys of a stimulus to the config key they fill; `multiline` keeps line breaks in
    evidence (LLM graders always do). `hints` are wrong type names for which this keyword is suggested; one written as
    `name: text` shows the text instead of the suggestion.
    """

    kind: Literal["code", "llm", "human"] = "code"
    determinism: Literal["static", "complex-static", "slm", "llm"] = "static"
    reference: Literal["reference-free", "reference-based"] = "reference-free"
    temporal_scope: Literal["point-in-time", "trajectory-level", "cross-trajectory"] = "trajectory-level"
    cost: Literal["free", "low", "medium", "high"] = "low"
    requires_workspace: bool = False
    requires_judge: bool = False
    turn: bool | None = None
    scope: bool | None = None
    oracle: Literal["trajectory", "state", "either", "none"] | None = None
    comparable: bool = False
    multiline: bool = False
    constraints: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    hints: tuple[str, ...] = ()
    function: Callable[..., Any] | None = None

    @property
    def supports_turn(self) -> bool:
        """Whether an entry may have `turn`, as far as the record says it."""
        return not self.requires_workspace if self.turn is None else self.turn

    @property
    def supports_scope(self) -> bool:
        """Whether an entry may have `scope`, as far as the record says it."""
        return not self.requires_workspace if self.scope is None else self.scope

    def gradable_with(self, config: object) -> str:
        """Golden input with which an entry can be graded: a method `oracle()` of its validated config has the say."""
        oracle = getattr(config, "oracle", None)
        if callable(oracle):
            return str(oracle())
        from vally.model.config import needs_workspace

        return self.oracle or ("state" if needs_workspace(self, config) else "trajectory")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the decorated function or class, so that a `@grader` can be unit tested like what it decorates."""
        if self.function is None:
            raise TypeError(f"grader record '{self.name}' was not made by the decorator and cannot be called")
        return self.function(*args, **kwargs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSpec(Record):
    """One executor; `capabilities` is the most it can do with any config.

    `enabled_by` says of a capability, by its name, what the config must have for it, such as `'skillsDir'`; users read
    it when an eval needs what its executor cannot do as it is configured.
    """

    capabilities: Capabilities = field(default_factory=Capabilities)
    enabled_by: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSpec(Record):
    """One backend. `isolates`: agents are confined; `remote`: workspaces may not exist on this machine.

    Two attributes of the config model are optional. `agent_network` is what processes of agents reach with this config:
    `host` (also when there is none), `model` or `none`. `changeable` holds names of arguments that say where trials
    run, but nothing of what comes out, so that a continued run may be given others.
    """

    isolates: bool = False
    remote: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSpec(Record):
    """One judge; it serves the values of `judge_provider.type` in `provider_types`.

    `metadata` goes into the metadata of every result that it has a part in. A run that may ask it prints `notice`.
    """

    provider_types: tuple[str, ...] = ()
    supports_files: bool = False
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    notice: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReporterOption:
    """A further option of a command: a flag, a text, or an http(s) URL without credentials; `help` as `summary`."""

    name: str
    help: str
    value: Literal["flag", "text", "url"] = "flag"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReporterSpec(Record):
    """One reporter, called in the order of `order`; with `option` active only when the command has that option.

    With `option_file` the option may name a file, for one more copy of the report; that is an older spelling.
    `options` are found in `RunOptions.flags` by their names: true, a text, or nothing when not given. `kinds` are the
    kinds of runs it is told of, as in `RunStart.kind`; none named means all. `files` maps the labels of
    `on_run_complete` to names in the run directory, of files that the events alone make: they are listed for a stored
    run, and written anew when its records change. With `shows_stored_runs` it prints the report of a run that ended
    earlier, when the events of that run are told again. `notice_s` is how long it may take at the end before the user
    is told who is waited for.
    """

    order: int = 100
    option: str | None = None
    option_file: bool = False
    options: tuple[ReporterOption, ...] = ()
    kinds: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    shows_stored_runs: bool = False
    notice_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec(Record):
    """One command; the factory returns a `click.Command`, `function` is what programs call in its place, if any."""

    function: str | Callable[..., object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterSpec(Record):
    """One exporter, reading validated specs or a finished run."""

    source: Literal["spec", "run"] = "spec"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalProviderSpec(Record):
    """One eval provider; `patterns` are base-name globs of the foreign files it recognises."""

    patterns: tuple[str, ...] = ()


class Grader(Protocol):
    """Scores one trial.

    `grade` may be sync or async. Optional methods: `default_name(config) -> str | None`,
    `asserts_absence(config) -> bool` and `settled_verdict(config) -> bool | None` (what no run can change: passed or
    failed; None when it depends on the run), all pure; `compare(input) -> CompareResult` with a comparable record;
    async `repeat(input, recorded) -> GraderResult`, which asks again for those details of a result that are errors.
    """

    def grade(self, input: GraderInput[Any]) -> GraderResult | Awaitable[GraderResult]: ...


class ComparingGrader(Protocol):
    """A grader that can also compare two trajectories of one stimulus."""

    def compare(self, input: CompareInput[Any]) -> CompareResult | Awaitable[CompareResult]: ...


class Executor(Protocol):
    """Runs one agent; `execute` is called concurrently and either returns a trajectory or raises `ExecutorError`.

    Optional methods: `configure(context)` (a `RunContext`; once, before a run is planned), `validate_config(config)`,
    `check_network(config, stimulus, network)` (raises `ExecutorError` for what needs more of the network than agents
    have there, see `RunContext.agent_network`), `capabilities_for(config)`, `host_paths(config)`, `prepare(stimulus,
    options)` (after staging, before the baseline), `cleanup(trial_id, preserve_workspace=...)`, `preflight(config)`
    (may return a line that says what would start), `example_configs()` (label -> config with which it could start, for
    an executor that cannot without settings), `tool_names(config)` (all tools the agent can have beside those of MCP
    servers; None when not known).
    """

    async def execute(self, stimulus: Stimulus, options: ExecutorOptions) -> Trajectory: ...

    async def shutdown(self) -> None: ...


class Backend(Protocol):
    """Prepares workspaces, runs agents in them and grades the result.

    Optional methods: `preflight(config, context)`, which tells whether trials could be run at all without making
    anything ready (raises BackendError, else may return a line of what would start), and `recorded(item_id)`, called
    when the result of an item is on disk.

    The optional mapping `facts`, of texts, is what `run-manifest.json` records of a backend that is prepared, such as
    the version of what it runs trials with. It holds no secrets.
    """

    async def prepare(self, args: Mapping[str, str | list[str]], context: RunContext) -> None: ...

    async def run_trial(self, item: TrialItem, options: TrialOptions) -> TrialOutcome: ...

    async def grade_trial(self, request: GradeRequest) -> GradeOutcome: ...

    async def shutdown(self) -> None: ...


class Judge(Protocol):
    """A model that grades.

    Optional methods: `prepare(context)` (a `RunContext`; once, before `configure`) and `preflight(model)`.
    """

    def configure(self, provider: ProviderConfig | None) -> None: ...

    async def judge(self, request: JudgeRequest) -> JudgeReply: ...

    async def shutdown(self) -> None: ...


class Reporter(Protocol):
    """Tells people or programs about a run; every method is optional and may be sync or async."""

    def on_run_start(self, event: RunStart) -> Any: ...

    def on_trial_start(self, event: TrialStart) -> Any: ...

    def on_trial_phase(self, event: TrialPhase) -> Any: ...

    def on_trial_result(self, event: TrialDone) -> Any: ...

    def on_diagnostics(self, event: Diagnostics) -> Any: ...

    def on_eval_complete(self, event: EvalComplete) -> Any: ...

    def on_run_complete(self, event: RunComplete) -> Mapping[str, Path] | None: ...


class Exporter(Protocol):
    """Converts evals or a run into files of another tool."""

    async def export(self, request: ExportRequest) -> ExportResult: ...


class EvalProvider(Protocol):
    """Reads evals written for another tool."""

    def detect(self, path: Path) -> bool: ...

    async def load(self, path: Path, context: ProviderContext) -> ForeignSpec: ...


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of plugin: its entry-point group, hook and record type."""

    name: str
    group: str
    hook: str
    record: type[Record]


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        name: Kind(name, f"vally.{plural}", f"vally_{plural}", record)
        for name, plural, record in (
            ("grader", "graders", GraderSpec),
            ("executor", "executors", ExecutorSpec),
            ("backend", "backends", BackendSpec),
            ("judge", "judges", JudgeSpec),
            ("reporter", "reporters", ReporterSpec),
            ("command", "commands", CommandSpec),
            ("exporter", "exporters", ExporterSpec),
            ("eval-provider", "eval_providers", EvalProviderSpec),
        )
    }
)
