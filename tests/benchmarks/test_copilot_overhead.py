"""What a trial of the executor `copilot-sdk` costs beside the same session with the bare SDK.

Run with `-s` to see the ratio. Both take turns, and the fastest of each counts, so that other load on the machine
falls out.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

import agents
import anyio
import pytest

from vally import LocalProcessRunner
from vally.testing import MockLlm, executor_options, stimulus
from vally_executor_copilot_sdk.config import CopilotConfig
from vally_executor_copilot_sdk.executor import CopilotExecutor

pytestmark = [pytest.mark.heavy, pytest.mark.anyio]

ROUNDS = 40
PROMPT = """Do it.
!tool create {"path": "hello.txt", "file_text": "hello"}
!tool bash {"command": "cat hello.txt", "description": "look"}
!say done
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Bare:
    """The SDK, used as its manual says, without anything of vally."""

    def __init__(self, directory: Path, runtime: Path, url: str) -> None:
        from copilot import CopilotClient, RuntimeConnection

        directory.mkdir()
        self._directory = directory
        self._url = url
        self._client = CopilotClient(
            connection=RuntimeConnection.for_stdio(path=str(runtime)),
            env={"PATH": "/usr/bin:/bin", "HOME": str(directory), "COPILOT_AUTO_UPDATE": "false"},
            base_directory=str(directory / "home"),
            working_directory=str(directory),
            use_logged_in_user=False,
            log_level="error",
        )

    async def start(self) -> None:
        await self._client.start()

    async def stop(self) -> None:
        process = self._client._cli_process
        await self._client.force_stop()
        assert process is not None
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

    async def trial(self, name: str) -> float:
        from copilot.session import PermissionHandler

        work = self._directory / name
        work.mkdir()
        idle = anyio.Event()

        def listen(event: Any) -> None:
            if event.type.value == "session.idle":
                idle.set()

        began = time.perf_counter()
        session = await self._client.create_session(
            on_permission_request=PermissionHandler.approve_all,
            on_event=listen,
            model="mock-model",
            working_directory=str(work),
            provider={"type": "openai", "base_url": f"{self._url}/v1"},
            included_builtin_skills=[],
        )
        await session.send(PROMPT)
        await idle.wait()
        await session.disconnect()
        await self._client.delete_session(session.session_id)
        return time.perf_counter() - began


class Executor:
    """The same by the executor, its process shared as in a run."""

    def __init__(self, directory: Path, runtime: Path, url: str) -> None:
        directory.mkdir()
        self._directory = directory
        self._executor = CopilotExecutor()
        self._runner = LocalProcessRunner(f"run-{uuid.uuid4()}", {}, cwd=directory)
        provider = {"type": "openai", "baseUrl": f"{url}/v1", "model": "mock-model"}
        self._config = CopilotConfig.model_validate({"provider": provider}, by_alias=True)
        self._env = {"COPILOT_CLI_PATH": str(runtime)}

    async def stop(self) -> None:
        await self._executor.shutdown()

    async def trial(self, name: str) -> float:
        options = executor_options(
            self._directory / name,
            executor_config=self._config,
            process_env=self._env,
            shared_runner=self._runner,
            shared_dir=self._directory,
        )
        began = time.perf_counter()
        trajectory = await self._executor.execute(stimulus(PROMPT), options)
        seconds = time.perf_counter() - began
        assert trajectory.output == "done"
        return seconds


async def test_overhead_over_the_bare_sdk(tmp_path: Path) -> None:
    runtime = agents.copilot_runtime()
    with MockLlm() as llm:
        bare, executor = Bare(tmp_path / "bare", runtime, llm.url), Executor(tmp_path / "vally", runtime, llm.url)
        await bare.start()
        try:
            times: dict[str, list[float]] = {"bare": [], "vally": []}
            for number in range(ROUNDS):
                times["bare"].append(await bare.trial(f"t{number}"))
                times["vally"].append(await executor.trial(f"t{number}"))
        finally:
            await bare.stop()
            await executor.stop()
    fastest = {name: min(values) for name, values in times.items()}
    ratio = fastest["vally"] / fastest["bare"]
    print(f"\nbare {fastest['bare'] * 1000:.0f} ms, vally {fastest['vally'] * 1000:.0f} ms, ratio {ratio:.2f}")
    assert ratio < 1.25
