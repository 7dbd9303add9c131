from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field, model_validator

from vally import (
    CamelConfig,
    Config,
    Diagnostic,
    EvalSpec,
    ExecutorSpec,
    GraderSpec,
    JudgeSpec,
    Project,
    SpecFile,
    Stimulus,
)
from vally.host import PluginHost
from vally.model.config import Pattern
from vally.spec import LoadedSpec, find_project, read_eval_spec


class Contains(Config):
    substring: str = Field(min_length=1)
    negate: bool = False


class Matches(Config):
    pattern: Pattern


class Exists(Config):
    path: str
    negate: bool = False


class Calls(Config):
    required: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _something(self) -> Calls:
        if not self.required and not self.disallowed:
            raise ValueError("one of 'required' and 'disallowed' is required")
        return self


class ToolMatches(Config):
    required: tuple[Pattern, ...] = ()
    disallowed: tuple[Pattern, ...] = ()


class Limit(Config):
    max: int = Field(ge=0)

    def warnings(self) -> list[str]:
        return ["'max' is so high that it says nothing"] if self.max > 1000 else []


class TimeLimit(Config):
    max: str


class Judged(Config):
    kinds: tuple[str, ...] = Field(default=("trajectory",), alias="evidence")
    criteria: tuple[str, ...] = ()
    output_delivery: str | None = Field(default=None, deprecated="it has no effect")

    def evidence(self) -> frozenset[str]:
        return frozenset(self.kinds) & {"diff", "golden_patch", "repo"}


def grader(name: str, config: type[Config] | None, **fields: Any) -> GraderSpec:
    return GraderSpec(name=name, summary="checks something", factory=object, config=config, **fields)


class ExecutorConfig(CamelConfig):
    fixture_dir: str | None = None
    provider: dict[str, Any] | None = None


class PickyExecutor:
    def validate_config(self, config: Mapping[str, object]) -> None:
        if config.get("fixtureDir") == "bad":
            raise RuntimeError("fixtureDir must not be bad")
        if str(config.get("fixtureDir", "")).startswith("secret"):
            raise RuntimeError(f"cannot open {config['fixtureDir']}")

    async def execute(self, *_: object) -> None: ...

    async def shutdown(self) -> None: ...


class TinyJudgeConfig(CamelConfig):
    path: SpecFile | None = None
    threads: int = 1


RECORDS = (
    grader("output-contains", Contains, hints=("contains",)),
    grader("output-matches", Matches, hints=("regex",)),
    grader("file-exists", Exists, requires_workspace=True),
    grader("completed", None),
    grader("diff-empty", None, turn=True, scope=False),
    grader("tool-calls", ToolMatches, constraints={"expect_tools": "required", "reject_tools": "disallowed"}),
    grader("skill-invocation", Calls, constraints={"expect_skills": "required", "reject_skills": "disallowed"}),
    grader("turn-count", Limit, constraints={"max_turns": "max"}),
    grader("token-budget", Limit, constraints={"max_tokens": "max"}),
    grader("wall-time", TimeLimit, constraints={"max_duration": "max"}),
    grader(
        "prompt",
        Judged,
        kind="llm",
        requires_judge=True,
        hints=("pairwise: use 'prompt' for one run and 'vally compare' for two",),
    ),
    ExecutorSpec(name="picky", summary="runs nothing", factory=PickyExecutor, config=ExecutorConfig),
    JudgeSpec(name="small", summary="judges", factory=object, provider_types=("tiny",), config=TinyJudgeConfig),
)


@dataclass(frozen=True)
class Outcome:
    loaded: LoadedSpec

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self.loaded.diagnostics

    @property
    def found(self) -> list[str]:
        """`line:column code` of each finding, in order; errors in capitals."""
        return [
            f"{item.line}:{item.column} {item.code.upper() if item.level == 'error' else item.code}"
            for item in self.diagnostics
        ]

    @property
    def codes(self) -> list[str]:
        return [item.code for item in self.diagnostics]

    def only(self, code: str) -> Diagnostic:
        (item,) = [item for item in self.diagnostics if item.code == code]
        return item

    @property
    def spec(self) -> EvalSpec:
        assert self.loaded.spec is not None, self.found
        return self.loaded.spec

    @property
    def clean(self) -> EvalSpec:
        assert self.found == []
        return self.spec

    @property
    def stimulus(self) -> Stimulus:
        return self.spec.stimuli[0]


class Workspace:
    """A directory with a project; calling it loads a spec from a text."""

    def __init__(self, root: Path, host: PluginHost) -> None:
        self.root = root
        self.host = host

    def write(self, name: str, content: str | bytes = "") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def skill(self, path: str, name: str | None = None) -> Path:
        self.write(f"{path}/SKILL.md", f"---\nname: {name or Path(path).name}\ndescription: d\n---\n# Skill\n")
        return self.root / path

    def project(self, text: str = "") -> Project:
        return find_project(self.write(".vally.yaml", text).parent, self.root)

    def __call__(self, text: str | bytes, name: str = "eval.yaml", **options: Any) -> Outcome:
        path = self.write(name, text)
        project = (
            find_project(self.root, self.root) if (self.root / ".vally.yaml").exists() else Project(root=self.root)
        )
        return Outcome(read_eval_spec(path, **{"project": project, "host": self.host, **options}))

    def stimulus(self, text: str, **options: Any) -> Outcome:
        """Load a spec whose one stimulus has these further keys, from line 4 on."""
        body = "".join(f"    {line}\n" for line in text.splitlines())
        return self(f"stimuli:\n  - name: a\n    prompt: p\n{body}", **options)


@pytest.fixture(scope="session")
def host() -> PluginHost:
    return PluginHost.from_objects(*RECORDS)


@pytest.fixture
def work(tmp_path: Path, host: PluginHost) -> Workspace:
    return Workspace(tmp_path.resolve(), host)


@pytest.fixture
def records() -> tuple[Any, ...]:
    return RECORDS


@pytest.fixture
def make_host() -> Callable[..., PluginHost]:
    return lambda *more: PluginHost.from_objects(*RECORDS, *more)
