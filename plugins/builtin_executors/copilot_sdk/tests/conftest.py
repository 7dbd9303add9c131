"""Trials of the executor without a backend: the real runtime, a model server whose answers stand in the prompts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import agents
import pytest
from trial_fixtures import anyio_backend, trial_id

from vally import ExecutorOptions, Skill, Trajectory, run_agent
from vally.testing import MockLlm, executor_options, stimulus
from vally_executor_copilot_sdk.config import CopilotConfig
from vally_executor_copilot_sdk.executor import CopilotExecutor

__all__ = ["anyio_backend", "trial_id"]

KEY = "MOCK_API_KEY"


@pytest.fixture(scope="session")
def runtime() -> Path:
    return agents.copilot_runtime()


@pytest.fixture
def llm() -> Iterator[MockLlm]:
    with MockLlm() as server:
        yield server


@pytest.fixture
def process_env(runtime: Path) -> dict[str, str]:
    """What the program finds around it: the runtime, and a key for the model server."""
    return {"COPILOT_CLI_PATH": str(runtime), KEY: "mock-key-4711", "COPILOT_SKIP_CLI_DOWNLOAD": "1"}


def provider_of(llm: MockLlm) -> Callable[..., dict[str, Any]]:
    """The model server as a provider of one dialect."""

    def make(dialect: str = "completions", **keys: Any) -> dict[str, Any]:
        own = {"baseUrl": llm.url} if dialect == "anthropic" else {"baseUrl": f"{llm.url}/v1", "wireApi": dialect}
        kind = "anthropic" if dialect == "anthropic" else "openai"
        return {"type": kind, **own, "apiKeyEnv": KEY, "model": "mock-model", **keys}

    return make


@pytest.fixture
def provider(llm: MockLlm) -> Callable[..., dict[str, Any]]:
    return provider_of(llm)


class Runs:
    """Runs trials one after the other with one executor."""

    def __init__(self, directory: Path, trial_id: str, process_env: Mapping[str, str], provider: Any) -> None:
        self.executor = CopilotExecutor()
        self.directory = directory
        self._trial_id = trial_id
        self._process_env = process_env
        self._provider = provider

    @property
    def work(self) -> Path:
        return self.directory / "work"

    def skill(self, name: str, frontmatter: str | None = None) -> Skill:
        """A skill in the workspace, as a backend offers it."""
        path = self.work / ".skills" / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        text = f"name: {name}\ndescription: Use it to {name}\n" if frontmatter is None else frontmatter
        path.write_text(f"---\n{text}---\nBODY-OF-{name}\n")
        return Skill(name=name, description="", path=path, raw_content=path.read_text(), frontmatter={})

    def options(self, config: Mapping[str, Any] | None = None, **fields: Any) -> ExecutorOptions:
        """Options of a trial; keys of the config with which it asks the model server, and other fields."""
        values = {"provider": self._provider(), **(config or {})}
        env = {**self._process_env, **fields.pop("process_env", {})}
        parsed = CopilotConfig.model_validate(values, by_alias=True)
        facts = {"trial_id": self._trial_id, "executor_config": parsed, "process_env": env, **fields}
        return executor_options(self.directory, **facts)

    async def __call__(self, *prompts: str, config: Mapping[str, Any] | None = None, **fields: Any) -> Trajectory:
        """Run a trial as a backend does."""
        options = self.options(config, **fields)
        try:
            return await run_agent(self.executor, stimulus(*prompts), options, blocking=False)
        finally:
            await options.runner.kill_all()


@pytest.fixture
def make_runs(trial_id: str, process_env: Mapping[str, str]) -> Callable[[Path, MockLlm], Runs]:
    """Trials in a directory and with a model server of one's own; the executor is to be shut down."""
    return lambda directory, llm: Runs(directory, trial_id, process_env, provider_of(llm))


@pytest.fixture
async def run(tmp_path: Path, make_runs: Callable[[Path, MockLlm], Runs], llm: MockLlm) -> AsyncIterator[Runs]:
    runs = make_runs(tmp_path.resolve(), llm)
    runs.work.mkdir()
    yield runs
    await runs.executor.shutdown()
