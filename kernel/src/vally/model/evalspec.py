"""A loaded eval: frozen dataclasses with everything merged, typed and made absolute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

Level = Literal["error", "warning", "info"]
DEFAULT_EXECUTOR = "copilot-sdk"
DEFAULT_BACKEND = "local"
DEFAULT_JUDGE = "copilot"
DEFAULT_JUDGE_MODEL = "gpt-5.6-terra"
DEFAULT_TIMEOUT_MS = 120_000
DEFAULT_COMMAND_TIMEOUT_MS = 60_000


def _empty() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A place in a file; line and column are 1-based, columns count Unicode code points."""

    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """A second place that a diagnostic speaks of."""

    file: str | None
    line: int | None
    column: int | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding about a file that a user wrote. `context` names the place in words; `pointer` is a JSON Pointer."""

    code: str
    level: Level
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    pointer: str | None = None
    hint: str | None = None
    context: str | None = None
    related: tuple[Related, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFile:
    """One item of `files`: an absolute source, a relative POSIX destination and the root it goes to."""

    src: Path
    dest: str
    dest_root: Literal["workspace", "assets"] = "workspace"
    keep_name: bool = False
    """`dest` was written with a trailing slash, so a file keeps its own name inside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSource:
    """A repository as the base of the workspace."""

    type: Literal["worktree", "clone"]
    source: Path | None = None
    url: str | None = None
    ref: str | None = None
    shallow: bool = False
    sparse: tuple[str, ...] = ()
    history: Literal["ref", "all", "none"] = "ref"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """One MCP server. In a spec `cwd` and `command` are as written; executors get them resolved."""

    name: str
    type: Literal["stdio", "http", "sse"]
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=_empty)
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=_empty)
    timeout_ms: int | None = None
    tools: tuple[str, ...] | None = None
    base_dir: Path | None = None

    @property
    def timeout_s(self) -> float:
        """Seconds that it may take to be ready, 30 unless the spec says otherwise."""
        return 30.0 if self.timeout_ms is None else self.timeout_ms / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What is prepared for a trial. `skills` is None when no layer declares any, so that `--skill-dir` applies."""

    skills: tuple[Path, ...] | None = None
    files: tuple[StagedFile, ...] = ()
    commands: tuple[str, ...] = ()
    command_timeout_ms: int = DEFAULT_COMMAND_TIMEOUT_MS
    command_timeout_text: str = "60s"
    git: GitSource | None = None
    mcp_servers: Mapping[str, McpServer] = field(default_factory=_empty)
    env: Mapping[str, str] = field(default_factory=_empty)

    @property
    def stages_anything(self) -> bool:
        """Whether a workspace has to be prepared for it."""
        return bool(self.skills or self.files or self.commands or self.git)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderEntry:
    """One entry of the effective grader list. `constraint` is the constraint key it was made from.

    `problem` is why a part of it could not be read: what is left says less than what was written, so that nothing
    can be graded by it.
    """

    type: str
    config: Mapping[str, object] = field(default_factory=_empty)
    name: str | None = None
    turn: int | None = None
    scope: str | Mapping[str, object] | None = None
    required: bool = False
    weight: float | None = None
    constraint: str | None = None
    position: Position | None = None
    pointer: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorChoice:
    """Name of an executor and its config mapping as written (placeholders filled), and where that is written."""

    name: str = DEFAULT_EXECUTOR
    config: Mapping[str, object] = field(default_factory=_empty)
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """An endpoint of a model: `type` and `base_url` beside the keys of the provider shape, `options` the rest.

    `api_key` and `bearer_token` are the values of the variables that `api_key_env` and `bearer_token_env` name; they
    are there only in what plugins get when a run starts (`resolve_provider`), never in a spec.
    """

    type: str
    base_url: str | None = None
    api_key_env: str | None = None
    bearer_token_env: str | None = None
    api_version: str | None = None
    model: str | None = None
    headers: Mapping[str, str] = field(default_factory=_empty, repr=False)
    wire_api: Literal["completions", "responses"] = "completions"
    answer: Literal["tool", "schema"] = "tool"
    options: Mapping[str, object] = field(default_factory=_empty)
    api_key: str | None = field(default=None, repr=False)
    bearer_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """How results become a verdict; `timeout_text` is the budget as written."""

    weights: Mapping[str, float] = field(default_factory=_empty)
    threshold: float | None = None
    pass_rate: float | None = None
    timeout_ms: int | None = None
    timeout_text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The `defaults` of a spec; None means that the spec does not say, so that options and built-ins decide."""

    runs: int | None = None
    timeout_ms: int | None = None
    max_agent_duration_ms: int | None = None
    model: str | None = None
    reasoning_effort: str | None = None
    judge_model: str | None = None
    judge_reasoning_effort: str | None = None
    judge_provider: ProviderConfig | None = None
    executor: ExecutorChoice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """Limits of a stimulus that an executor may know; the checks are grader entries."""

    max_turns: int | None = None
    max_tokens: int | None = None
    max_duration_ms: int | None = None
    max_agent_duration_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifacts:
    """Globs, relative to the workspace, of files to keep."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file sent with the message of one turn."""

    path: Path
    name: str
    mime_type: str
    turn: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stimulus:
    """One effective stimulus: root merged in, paths absolute.

    `turns` has at least one message; `prompt` is their text joined by a blank line. `document` is the stimulus with
    spec keys as records show it (before redaction). `tags` values are tuples of strings.
    """

    name: str
    prompt: str
    turns: tuple[str, ...]
    has_turns: bool = False
    environment: Environment = field(default_factory=Environment)
    agent_environment: Environment = field(default_factory=Environment)
    grading_environment: Environment = field(default_factory=Environment)
    effective_environment: Environment | None = None
    """Root `environment` and `agent_environment`, then those of the stimulus, merged in this order."""
    tags: Mapping[str, str | tuple[str, ...]] = field(default_factory=_empty)
    graders: tuple[GraderEntry, ...] = ()
    rubric: tuple[str, ...] = ()
    constraints: Constraints = field(default_factory=Constraints)
    artifacts: Artifacts = field(default_factory=Artifacts)
    attachments: tuple[Attachment, ...] = ()
    simulation: Mapping[str, object] | None = None
    golden_patch: Mapping[str, object] | None = None
    golden_command: Mapping[str, object] | str | None = None
    golden_trajectory: Mapping[str, object] | None = None
    source: Mapping[str, object] | None = None
    position: Position | None = None
    document: Mapping[str, object] = field(default_factory=_empty)

    @property
    def merged_environment(self) -> Environment:
        """The environment as the agent sees it; without an effective one the agent's laid over that of all."""
        if self.effective_environment is not None:
            return self.effective_environment
        from vally.model.merging import merge_environments

        return merge_environments(self.environment, self.agent_environment)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalSpec:
    """One loaded spec. `path` is absolute; `display_path` is how records and messages name it (POSIX)."""

    name: str
    path: Path
    display_path: str
    description: str | None = None
    version: str | None = None
    type: Literal["capability", "regression"] | None = None
    defaults: Defaults = field(default_factory=Defaults)
    stimuli: tuple[Stimulus, ...] = ()
    scoring: Scoring = field(default_factory=Scoring)
    tags: Mapping[str, str | tuple[str, ...]] = field(default_factory=_empty)
    metadata: Mapping[str, object] = field(default_factory=_empty)
    document: Mapping[str, object] = field(default_factory=_empty)
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def spec_dir(self) -> Path:
        """Directory that relative paths of the spec start from."""
        return self.path.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A named selection of the project file."""

    name: str
    description: str | None = None
    filter: Mapping[str, tuple[str, ...]] = field(default_factory=_empty)
    evals: tuple[str, ...] | None = None
    metadata: Mapping[str, object] = field(default_factory=_empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The project file in use, or the defaults when there is none. `root` is absolute."""

    root: Path
    path: Path | None = None
    skills: tuple[str, ...] = ("skills/",)
    evals: tuple[str, ...] = ("evals/",)
    results: str | None = None
    eval_filenames: tuple[str, ...] = ("eval.yaml", "eval.yml")
    environments: Mapping[str, object] = field(default_factory=_empty)
    suites: Mapping[str, Suite] = field(default_factory=_empty)
    metadata: Mapping[str, object] = field(default_factory=_empty)
    plugins: Mapping[str, tuple[str, ...]] = field(default_factory=_empty)
    backend: str | None = None
    backend_args: Mapping[str, str | list[str]] = field(default_factory=_empty)
    eval_provider: str | None = None
    positions: Mapping[str, Position] = field(default_factory=_empty)
    """Where values of the file stand, by JSON Pointer."""
    diagnostics: tuple[Diagnostic, ...] = ()
