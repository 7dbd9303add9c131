"""A trial of the mock executor without a backend."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from trial_fixtures import anyio_backend, work_dir

from vally import ExecutorOptions, LocalProcessRunner, Stimulus, Trajectory, run_agent
from vally_executor_mock.config import MockConfig
from vally_executor_mock.executor import MockExecutor

__all__ = ["anyio_backend", "work_dir"]

Play = Callable[..., Awaitable[Trajectory]]


@pytest.fixture
def write_fixture(work_dir: Path) -> Callable[..., Path]:
    """Write a fixture for the stimulus `s` into the workspace."""

    def write(content: object, name: str = "s", directory: Path | None = None) -> Path:
        path = (directory or work_dir / ".mock-executor") / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


@pytest.fixture
def play(tmp_path: Path, work_dir: Path) -> Play:
    """Run one trial as a backend does."""

    async def run(
        *prompts: str,
        name: str = "s",
        config: Mapping[str, Any] | None = None,
        timeout_ms: int = 60_000,
        **changes: Any,
    ) -> Trajectory:
        turns = prompts or ("hi",)
        stimulus = Stimulus(name=name, prompt="\n\n".join(turns), turns=turns, has_turns=len(turns) > 1)
        options = ExecutorOptions(
            **{
                "item_id": "item",
                "trial_id": "trial",
                "work_dir": work_dir,
                "trial_dir": tmp_path,
                "spec_dir": tmp_path,
                "timeout_ms": timeout_ms,
                "deadline": time.monotonic() + timeout_ms / 1000,
                "executor_config": MockConfig.model_validate(config or {}),
                "runner": LocalProcessRunner("trial", {}),
                **changes,
            }
        )
        return await run_agent(MockExecutor(), stimulus, options)

    return run
