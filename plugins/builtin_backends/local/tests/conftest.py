"""Trials on this machine with scripted agents, real repositories and nothing of the user's configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import (
    Config,
    Environment,
    ExecutorChoice,
    GraderEntry,
    GraderInput,
    GraderResult,
    GraderSpec,
    JudgeSettings,
    PluginHost,
    Redactor,
    RunContext,
    Scoring,
    StagedFile,
    Stimulus,
    TrialItem,
    TrialOptions,
)
from vally.testing import ProjectBuilder, ScriptedExecutor, plugin_host, process_sentinel
from vally_backend_local.backend import LocalBackend
from vally_backend_local.outcome import LocalOutcome


class DiffHasConfig(Config):
    """`value` is looked for in the diff of the run, or of the entry's turn."""

    value: str

    def evidence(self) -> frozenset[str]:
        return frozenset({"diff", "turn-diff"})


class DiffHas:
    def grade(self, input: GraderInput[DiffHasConfig]) -> GraderResult:
        text = input.trajectory.diff
        return GraderResult.verdict(text is not None and input.config.value in text, f"diff of {len(text or '')}")


class ShellConfig(Config):
    line: str


class Shell:
    """Passes when a shell line succeeds; the metadata tell what it wrote."""

    async def grade(self, input: GraderInput[ShellConfig]) -> GraderResult:
        work_dir = Path(input.trajectory.work_dir)
        done = await input.runner.run(["/bin/sh", "-c", input.config.line], cwd=work_dir, env=input.env)
        return GraderResult.verdict(done.returncode == 0, "ran", metadata={"stdout": done.stdout.decode().strip()})


GRADERS = (
    GraderSpec(name="diff-has", summary="looks into the diff", factory=DiffHas, config=DiffHasConfig),
    GraderSpec(name="shell", summary="runs a line", factory=Shell, config=ShellConfig, requires_workspace=True),
)


@dataclass
class Bench:
    """Runs single trials below one directory; `run` cleans up, `attempt` leaves that to the test."""

    root: Path
    temporary: Path
    host: PluginHost = field(default_factory=lambda: plugin_host(*GRADERS))
    args: Mapping[str, str] = field(default_factory=dict)
    process_env: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)
    cleaned: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.temporary.mkdir()
        self.process_env |= {"PATH": os.environ["PATH"], "TMPDIR": str(self.temporary), "LANG": "C.UTF-8"}

    @property
    def project(self) -> ProjectBuilder:
        return ProjectBuilder(self.root / "project")

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    @property
    def output(self) -> Path:
        return self.root / "run" / "eval" / "stimulus" / "default-model" / "0"

    def context(self, **fields: Any) -> RunContext:
        return RunContext(
            run_id="run",
            cache_dir=self.cache,
            project_root=self.root,
            process_env=self.process_env,
            on_warning=self.said.append,
            **fields,
        )

    def item(self, stimulus: Stimulus, **fields: Any) -> TrialItem:
        facts: dict[str, Any] = {
            "run_id": "run",
            "item_id": "item",
            "eval_name": "eval",
            "eval_file_path": "eval.yaml",
            "eval_index": 0,
            "stimulus": stimulus,
            "trial_index": 0,
            "total_trials": 1,
            "executor": ExecutorChoice(name="scripted"),
            "spec_dir": self.project.root,
            "spec_path": self.project.root / "eval.yaml",
            "project_root": self.root,
            "scoring": Scoring(),
            "judge": JudgeSettings(model="judge"),
            "timeout_ms": 60_000,
            "work_dir": self.root,
        }
        return TrialItem(**facts | fields)

    def options(self, executor: Any, **fields: Any) -> TrialOptions:
        facts: dict[str, Any] = {
            "host": self.host,
            "executor": executor,
            "executor_record": executor.record() if isinstance(executor, ScriptedExecutor) else None,
            "process_env": self.process_env,
            "redactor": Redactor({"API_TOKEN": "sesame-open"}),
            "output_dir": self.output,
            "run_dir": self.root / "run",
            "on_phase": lambda phase, _: self.phases.append(phase),
        }
        return TrialOptions(**facts | fields)

    def run(self, stimulus: Stimulus, executor: Any = None, *, item: Any = None, **fields: Any) -> LocalOutcome:
        """Run one trial and clean up; `item` are fields of the item, `fields` those of the options."""
        return self.with_backend(lambda backend: self.attempt(backend, stimulus, executor, item=item, **fields))

    def with_backend(self, work: Callable[[LocalBackend], Any], **context: Any) -> Any:
        """Do async work with a prepared backend that is shut down afterwards."""

        async def main() -> Any:
            backend = LocalBackend()
            await backend.prepare(self.args, self.context(**context))
            try:
                return await work(backend)
            finally:
                await backend.shutdown()

        return anyio.run(main)

    async def attempt(
        self, backend: LocalBackend, stimulus: Stimulus, executor: Any = None, *, item: Any = None, **fields: Any
    ) -> LocalOutcome:
        options = self.options(ScriptedExecutor() if executor is None else executor, **fields)
        outcome = await backend.run_trial(self.item(stimulus, **(item or {})), options)
        self.cleaned += await outcome.cleanup()
        return outcome

    @staticmethod
    def diff_has(value: str = "", **fields: Any) -> GraderEntry:
        """A grader that reads the diff."""
        return GraderEntry(type="diff-has", config={"value": value}, **fields)

    @staticmethod
    def shell(line: str) -> GraderEntry:
        """A grader that runs a shell line."""
        return GraderEntry(type="shell", config={"line": line})

    @staticmethod
    def stimulus(*graders: GraderEntry, **fields: Any) -> Stimulus:
        """A stimulus, by default with one turn."""
        turns = fields.pop("turns", ("Do it.",))
        return Stimulus(name="stimulus", prompt="\n\n".join(turns), turns=turns, graders=graders, **fields)

    @staticmethod
    def staged(*pairs: tuple[Path, str], **fields: Any) -> Environment:
        """An environment that stages these sources."""
        return Environment(files=tuple(StagedFile(src=source, dest=dest) for source, dest in pairs), **fields)

    @staticmethod
    def files_below(root: Path) -> dict[str, str]:
        """Text of all files, `.git` left out."""
        paths = (path for path in sorted(root.rglob("*")) if ".git" not in path.relative_to(root).parts)
        return {path.relative_to(root).as_posix(): path.read_text() for path in paths if path.is_file()}

    def left(self) -> list[str]:
        """Names in the system's temporary directory."""
        return sorted(path.name for path in self.temporary.iterdir())


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    made = Bench(tmp_path, tmp_path / "tmp")
    with process_sentinel():
        yield made
    assert made.left() == []
