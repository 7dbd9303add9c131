"""A trial of the executor without a backend: models that follow a script, and endpoints with fixed answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from endpoints import FixedEndpoint
from trial_fixtures import anyio_backend, model, trial_id, work_dir

from vally import ExecutorOptions, Skill, Trajectory, TrialSkipped, parse_skill, run_agent
from vally.testing import MockLlm, executor_options, plugin_host, stimulus
from vally_executor_openai_tools import plugin
from vally_executor_openai_tools.executor import OpenAiToolsExecutor

__all__ = ["anyio_backend", "model", "trial_id", "work_dir"]

(RECORD,) = plugin.vally_executors()


@pytest.fixture
def endpoint() -> Iterator[FixedEndpoint]:
    with FixedEndpoint() as server:
        yield server


@pytest.fixture
def options(tmp_path: Path, work_dir: Path, trial_id: str) -> Callable[..., ExecutorOptions]:
    """Options of a trial with a config for an endpoint."""

    def make(url: str, config: dict[str, Any] | None = None, **fields: Any) -> ExecutorOptions:
        provider = {"type": "openai", "baseUrl": url, **(config or {}).pop("provider", {})}
        parsed = plugin_host(RECORD).parse_config(RECORD, {"provider": provider, **(config or {})})
        facts = {"executor_config": parsed, "trial_id": trial_id, "model": "scripted", **fields}
        return executor_options(tmp_path, **facts)

    return make


@pytest.fixture
async def execute(
    model: MockLlm, options: Callable[..., ExecutorOptions]
) -> AsyncIterator[Callable[..., Awaitable[Trajectory]]]:
    """Run one trial as a backend does; the scripted model is asked unless a URL is given."""
    executor = OpenAiToolsExecutor()

    async def run(*prompts: str, url: str | None = None, config: Any = None, **fields: Any) -> Trajectory:
        given = options(model.url if url is None else url, config, **fields)
        try:
            return await run_agent(executor, stimulus(*prompts), given, blocking=False)
        except TrialSkipped as error:
            return error.trajectory or pytest.fail("the trajectory is lost")
        finally:
            await given.runner.kill_all()

    yield run
    await executor.shutdown()


@pytest.fixture
def offer(work_dir: Path) -> Callable[..., Skill]:
    """Put a skill into the workspace."""

    def make(name: str = "greeting", body: str = "Say hello.\n", description: str = "Says hello.") -> Skill:
        path = work_dir / name / "SKILL.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"---\nname: {name}\ndescription: {description}\n---\n{body}")
        parsed = parse_skill(path)
        return Skill(
            name=parsed.name,
            description=parsed.description,
            path=path,
            raw_content=parsed.raw_content,
            frontmatter=parsed.frontmatter,
            file_references=parsed.file_references,
        )

    return make
