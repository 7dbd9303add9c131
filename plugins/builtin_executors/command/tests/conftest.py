"""A trial of the command executor without a backend, with real programs as agents."""

from __future__ import annotations

import json
import os
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from trial_fixtures import anyio_backend, trial_id, work_dir

from vally import ExecutorOptions, LocalProcessRunner, Stimulus, Trajectory, run_agent
from vally_executor_command.config import CommandConfig
from vally_executor_command.executor import CommandExecutor

__all__ = ["anyio_backend", "trial_id", "work_dir"]

# Tells what it was given: arguments, input, directory and environment.
SPY = """
import json, os, sys
report = {"argv": sys.argv[1:], "stdin": sys.stdin.read(), "cwd": os.getcwd(), "env": dict(os.environ)}
with open(os.path.join(os.environ["REPORTS"], f"{len(os.listdir(os.environ['REPORTS']))}.json"), "w") as file:
    json.dump(report, file)
print("seen")
"""


@pytest.fixture(autouse=True)
def _nothing_left(trial_id: str) -> None:
    """Every test ends without processes of its trial."""


@pytest.fixture
def agent(tmp_path: Path) -> Callable[..., str]:
    """Write an agent and return the path of its program."""

    def write(body: str, *, name: str = "a", shell: bool = False) -> str:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        first = "/bin/sh" if shell else f"{sys.executable} -IS"
        path.write_text(f"#!{first}\n{textwrap.dedent(body)}\n")
        path.chmod(0o755)
        return str(path)

    return write


@pytest.fixture
def reports(tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
    """What the spies were given, in the order of their runs."""
    directory = tmp_path / "reports"
    directory.mkdir()

    def read() -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(directory.iterdir())]

    return read


@pytest.fixture
def spy(agent: Callable[..., str], reports: object) -> str:
    return agent(SPY)


@pytest.fixture
async def execute(tmp_path: Path, work_dir: Path, trial_id: str) -> AsyncIterator[Callable[..., Awaitable[Trajectory]]]:
    """Run one trial as a backend does."""
    runner = LocalProcessRunner(trial_id, {}, cwd=work_dir, owned_dirs=[work_dir])

    async def run(
        config: Mapping[str, Any],
        *prompts: str,
        executor: CommandExecutor | None = None,
        env: Mapping[str, str] | None = None,
        timeout_ms: int = 60_000,
        **changes: Any,
    ) -> Trajectory:
        turns = prompts or ("hi",)
        stimulus = Stimulus(name="s", prompt="\n\n".join(turns), turns=turns, has_turns=len(turns) > 1)
        options = ExecutorOptions(
            **{
                "item_id": "item",
                "trial_id": trial_id,
                "work_dir": work_dir,
                "trial_dir": tmp_path / "trial",
                "spec_dir": tmp_path,
                "env": {"PATH": os.environ["PATH"], "REPORTS": str(tmp_path / "reports"), **(env or {})},
                "timeout_ms": timeout_ms,
                "deadline": time.monotonic() + timeout_ms / 1000,
                "executor_config": CommandConfig.model_validate(config),
                "runner": runner,
                **changes,
            }
        )
        return await run_agent(executor or CommandExecutor(), stimulus, options)

    yield run
    await runner.kill_all()
