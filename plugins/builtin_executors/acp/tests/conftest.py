"""A trial of the executor without a backend: agents that are scripts, and real ones with a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from trial_fixtures import anyio_backend, model, trial_id, work_dir

from vally import Skill, Trajectory, TrialSkipped, parse_skill, run_agent
from vally.testing import executor_options, plugin_host, stimulus
from vally_executor_acp import plugin
from vally_executor_acp.executor import AcpExecutor

__all__ = ["anyio_backend", "model", "trial_id", "work_dir"]

(RECORD,) = plugin.vally_executors()


@pytest.fixture
async def execute(tmp_path: Path, trial_id: str) -> AsyncIterator[Callable[..., Awaitable[Trajectory]]]:
    """Run one trial as a backend does."""
    executor = AcpExecutor()

    async def run(config: dict[str, Any], *prompts: str, **fields: Any) -> Trajectory:
        facts = {"executor_config": plugin_host(RECORD).parse_config(RECORD, config), "trial_id": trial_id, **fields}
        options = executor_options(tmp_path, **facts)
        given = stimulus(*prompts)
        try:
            await executor.prepare(given, options)
            return await run_agent(executor, given, options, blocking=False)
        except TrialSkipped as error:
            return error.trajectory or pytest.fail("the trajectory is lost")
        finally:
            await options.runner.kill_all()

    yield run
    await executor.shutdown()


@pytest.fixture
def offer(work_dir: Path) -> Callable[..., Skill]:
    """Put a skill into the workspace."""

    def make(name: str = "greeting", body: str = "Say hello.\n") -> Skill:
        path = work_dir / name / "SKILL.md"
        path.parent.mkdir()
        path.write_text(f"---\nname: {name}\ndescription: Says hello politely.\n---\n{body}")
        parsed = parse_skill(path)
        return Skill(
            name=parsed.name,
            description=parsed.description,
            path=path,
            raw_content=parsed.raw_content,
            frontmatter=parsed.frontmatter,
        )

    return make
