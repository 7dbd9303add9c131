"""Many trials on few runtime processes; with the real runtime."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from vally import ExecutorError, LocalProcessRunner, Trajectory, run_agent
from vally.testing import MockLlm, executor_options, run_context, stimulus
from vally_executor_copilot_sdk import client, pool
from vally_executor_copilot_sdk.config import CopilotConfig
from vally_executor_copilot_sdk.executor import CopilotExecutor

pytestmark = [pytest.mark.heavy, pytest.mark.anyio]


def processes_of(trial_id: str) -> list[psutil.Process]:
    """Processes that were started for the session of a trial."""
    found = []
    for process in psutil.process_iter():
        try:
            environ = process.environ()
        except psutil.Error:
            continue
        if trial_id in environ.values():
            found.append(process)
    return found


def runtimes() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "copilot-runtime" in " ".join(child.cmdline())]


class Shared:
    """Trials of one run, with a runner and a directory that they share."""

    def __init__(self, directory: Path, process_env: Mapping[str, str], provider: Any) -> None:
        self.executor = CopilotExecutor()
        self.directory = directory
        self.shared_dir = directory / "shared"
        self.shared_dir.mkdir()
        self.runner = LocalProcessRunner(f"run-{uuid.uuid4()}", {}, cwd=self.shared_dir, owned_dirs=[self.shared_dir])
        self._process_env = process_env
        self._provider = provider

    async def trial(
        self, name: str, *prompts: str, config: Mapping[str, Any] | None = None, **fields: Any
    ) -> Trajectory:
        values = {"provider": self._provider(), **(config or {})}
        env = {**self._process_env, **fields.pop("process_env", {})}
        options = executor_options(
            self.directory / name,
            executor_config=CopilotConfig.model_validate(values, by_alias=True),
            process_env=env,
            shared_runner=self.runner,
            shared_dir=self.shared_dir,
            **fields,
        )
        try:
            return await run_agent(self.executor, stimulus(*prompts), options, blocking=False)
        finally:
            await options.runner.kill_all()
            assert not processes_of(options.trial_id)

    async def shutdown(self) -> None:
        await self.executor.shutdown()
        await self.runner.kill_all()


@pytest.fixture
def shared_environment(process_env: dict[str, str]) -> Iterator[dict[str, str]]:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield process_env
    assert not [child for child in psutil.Process().children(recursive=True) if child.pid not in before]


@pytest.fixture
async def shared(tmp_path: Path, shared_environment: dict[str, str], provider: Any) -> Any:
    made = Shared(tmp_path.resolve(), shared_environment, provider)
    yield made
    await made.shutdown()
    assert not list(made.shared_dir.iterdir())


def script(number: int) -> str:
    command = f"cat file.txt; echo shell {number} > shell.txt; cat shell.txt"
    return (
        f'trial {number}\n!tool create {{"path": "file.txt", "file_text": "content {number}\\n"}}\n'
        f'!tool bash {{"command": "{command}", "description": "d"}}\n'
        f"!say answer {number}"
    )


async def test_many_trials_at_once_do_not_mix(shared: Shared, llm: MockLlm) -> None:
    """Every file, answer and tool result belongs to its own trial."""
    found: dict[int, Trajectory] = {}
    clients: set[Any] = set()

    async def trial(number: int) -> None:
        found[number] = await shared.trial(f"t{number}", script(number), config={"sessionsPerClient": 16})
        clients.update(shared.executor.pool.clients)

    async with anyio.create_task_group() as tasks:
        for number in range(32):
            tasks.start_soon(trial, number)
    assert len(clients) == 2
    for number, trajectory in found.items():
        work = shared.directory / f"t{number}" / "work"
        assert (work / "file.txt").read_text() == f"content {number}\n"
        assert (work / "shell.txt").read_text() == f"shell {number}\n"
        assert sorted(path.name for path in work.iterdir()) == ["file.txt", "shell.txt"]
        assert trajectory.output == f"answer {number}"
        results = [event.data for event in trajectory.events if event.type == "tool_result"]
        assert [result["success"] for result in results] == [True, True]
        assert results[1]["result"].startswith(f"content {number}\nshell {number}\n")
        assert trajectory.metrics is not None
        assert trajectory.metrics.token_usage.call_count == 3
        prompts = [event.data["content"] for event in trajectory.events if event.type == "user_message"]
        assert prompts == [script(number)]
    assert len(llm.requests) == 32 * 3


async def test_equal_trials_share_a_process_and_others_do_not(shared: Shared, provider: Any) -> None:
    await shared.trial("a", "x\n!say y")
    await shared.trial("b", "x\n!say y")
    (first,) = shared.executor.pool.clients
    await shared.trial("c", "x\n!say y", config={"provider": provider(headers={"x-a": "b"})})
    await shared.trial("d", "x\n!say y", config={"settings": {"a": 1}})
    await shared.trial("e", "x\n!say y", base_env={"PATH": os.environ["PATH"], "MORE": "1"})
    assert len(shared.executor.pool.clients) == 4
    await shared.trial("f", "x\n!say y", config={"clients": "per-trial"})
    await shared.trial("g", "x\n!say y", assets_dir=shared.directory)
    assert len(shared.executor.pool.clients) == 4
    assert shared.executor.pool.clients[0] is first


async def test_the_environment_of_a_shared_process(shared: Shared) -> None:
    command = "env > env.txt; git config --get user.name > name.txt; pwd > pwd.txt"
    env = {"HOME": "/nonexistent", "SECRET_TOKEN": "canary-of-the-user"}
    base = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "FROM_SPEC": "yes", "GH_TOKEN": "canary-of-the-spec"}
    warnings: list[str] = []
    trajectory = await shared.trial(
        "a",
        f'x\n!tool bash {{"command": "{command}", "description": "d"}}\n!say y',
        process_env=env,
        base_env=base,
        warn=warnings.append,
    )
    work = shared.directory / "a" / "work"
    seen = dict(line.split("=", 1) for line in (work / "env.txt").read_text().splitlines() if "=" in line)
    assert seen["FROM_SPEC"] == "yes"
    assert seen["COPILOT_AGENT_SESSION_ID"] == trajectory.id
    assert seen["HOME"].startswith(str(shared.shared_dir))
    assert seen["TMPDIR"].startswith(str(shared.shared_dir))
    assert seen["COPILOT_HOME"].startswith(str(shared.shared_dir))
    assert "canary" not in (work / "env.txt").read_text()
    assert (work / "name.txt").read_text() == ""
    assert warnings == ["environment variable 'GH_TOKEN' is not passed on: the Copilot runtime would use it itself"]


async def test_processes_that_an_agent_leaves_behind(shared: Shared, tmp_path: Path) -> None:
    quiet = "</dev/null >/dev/null 2>&1"
    fork = f"(setsid sh -c 'sleep 600 & echo $! >> pids' {quiet})"
    command = f"setsid sleep 600 {quiet} & echo $! >> pids; nohup sleep 600 {quiet} & echo $! >> pids; {fork}; echo ok"
    await shared.trial("a", f'x\n!tool bash {{"command": "{command}", "description": "d"}}\n!say y')
    pids = [int(line) for line in (shared.directory / "a" / "work" / "pids").read_text().split()]
    assert len(pids) == 3
    for pid in pids:
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    (process,) = shared.executor.pool.clients
    assert process.failure is None, "the process that others use must live on"


async def test_the_runtime_is_in_a_session_of_its_own(shared: Shared) -> None:
    """Ctrl-C in a terminal reaches only the program itself."""
    await shared.trial("a", "x\n!say y")
    (process,) = runtimes()
    assert os.getsid(process.pid) == process.pid


async def test_a_crash_fails_all_trials_of_the_process_and_no_other(shared: Shared) -> None:
    sleeping = 'x\n!tool bash {"command": "touch busy; sleep 60", "description": "d"}\n!say y'
    errors: list[ExecutorError] = []

    async def fails(name: str) -> None:
        with pytest.raises(ExecutorError) as caught:
            await shared.trial(name, sleeping, config={"sessionsPerClient": 2})
        errors.append(caught.value)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fails, "a")
        tasks.start_soon(fails, "b")
        with anyio.fail_after(30):
            while not all((shared.directory / name / "work" / "busy").exists() for name in "ab"):
                await anyio.sleep(0.05)
        assert len(shared.executor.pool.clients) == 1
        other = await shared.trial("c", "x\n!say fine", config={"sessionsPerClient": 2})
        assert other.output == "fine"
        (runtime, *_) = [
            child for child in psutil.Process().children() if "copilot-runtime" in " ".join(child.cmdline())
        ]
        runtime.kill()
    assert [error.code for error in errors] == ["agent-crashed"] * 2
    first, second = (error.trajectory for error in errors)
    assert first is not None
    assert second is not None
    assert first.id != second.id
    later = await shared.trial("d", "x\n!say later", config={"sessionsPerClient": 2})
    assert later.output == "later"


async def test_a_process_that_served_many_sessions_is_replaced(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MOST_SESSIONS_SERVED", 2)
    used = []
    for name in "abc":
        trajectory = await shared.trial(name, 'x\n!tool bash {"command": "echo $PPID", "description": "d"}\n!say y')
        used += [event.data["result"].split()[0] for event in trajectory.events if event.type == "tool_result"]
    assert used[0] == used[1] != used[2]


async def test_nothing_of_a_session_is_kept(shared: Shared) -> None:
    trajectory = await shared.trial("a", "x\n!say y")
    (process,) = shared.executor.pool.clients
    kept = [path for path in process.settings.copilot_home.rglob(f"*{trajectory.id}*") if path.is_dir()]
    assert not kept


async def test_only_sessions_of_the_run_are_deleted_from_the_users_own_home(shared: Shared, tmp_path: Path) -> None:
    home = tmp_path / "my-copilot"
    mine = home / "session-state" / "mine" / "events.jsonl"
    mine.parent.mkdir(parents=True)
    mine.write_text("{}\n")
    env = {"EVALUATE_USE_HOST_COPILOT_HOME": "1", "COPILOT_HOME": str(home)}
    trajectory = await shared.trial("a", "x\n!say y", process_env=env)
    assert trajectory.output == "y"
    assert mine.read_text() == "{}\n"
    assert not (home / "session-state" / trajectory.id).exists()
    with pytest.raises(ExecutorError, match="'settings' would change the user's own Copilot home"):
        await shared.trial("b", "x", process_env=env, config={"settings": {}})
    await shared.executor.shutdown()
    assert mine.exists()


async def test_an_old_runtime_is_mentioned_once(
    shared: Shared, process_env: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[str] = []
    monkeypatch.setattr(client, "is_tested", lambda _: False)
    shared.executor.configure(run_context(tmp_path, process_env=process_env, on_warning=said.append))
    for name in "ab":
        await shared.trial(name, "x\n!say y", config={"clients": "per-trial"})
    (line,) = said
    assert "is older than those that were tested (1.0.100 and later)" in line


async def test_preflight_says_what_would_start(
    shared: Shared, process_env: dict[str, str], provider: Any, runtime: Path, tmp_path: Path
) -> None:
    shared.executor.configure(run_context(tmp_path, process_env=process_env))
    config = CopilotConfig.model_validate({"provider": provider()}, by_alias=True)
    assert await shared.executor.preflight(config) == f"Copilot runtime 1.0.102 ({runtime})"
    with pytest.raises(ExecutorError, match="not signed in to GitHub Copilot"):
        await shared.executor.preflight(CopilotConfig())
    (directory,) = shared.executor.host_paths(config)
    assert runtime.is_relative_to(directory)
    assert (directory / "prebuilds").is_dir()
    assert not runtimes()
