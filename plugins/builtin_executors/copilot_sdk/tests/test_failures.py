"""How trials end whose agent, runtime or model fails, or whose time is over; with the real runtime."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from vally import ExecutorError, StopSignal, Trajectory
from vally.testing import MockLlm
from vally_executor_copilot_sdk import client as clients
from vally_executor_copilot_sdk import waiting
from vally_executor_copilot_sdk.native import session_file

pytestmark = [pytest.mark.heavy, pytest.mark.anyio]

SLEEP = 'x\n!tool bash {"command": "echo $$ > busy; exec sleep 600", "description": "d"}\n!say y'


def runtime_of(run: Any) -> psutil.Process:
    """The process of the only client."""
    (client,) = run.executor.pool.clients
    (found,) = [
        child for child in psutil.Process().children() if client.settings.runtime.name in " ".join(child.cmdline())
    ]
    return found


def sleeping(run: Any) -> bool:
    """Whether the agent's command has begun."""
    path = run.work / "busy"
    return path.exists() and path.read_text().endswith("\n")


def is_gone(run: Any) -> bool:
    """Whether the agent's command is over."""
    pid = int((run.work / "busy").read_text())
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(30):
        while not condition():
            await anyio.sleep(0.02)


async def failing(run: Any, prompt: str, meanwhile: Callable[[], Any], **fields: Any) -> tuple[ExecutorError, float]:
    """Run a trial that fails; what is done meanwhile returns when it was done."""
    caught: list[ExecutorError] = []
    ended: list[float] = []
    began: list[float] = []

    async def trial() -> None:
        with pytest.raises(ExecutorError) as error:
            await run(prompt, **fields)
        ended.append(time.monotonic())
        caught.append(error.value)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(trial)
        await meanwhile()
        began.append(time.monotonic())
    return caught[0], ended[0] - began[0]


@pytest.mark.parametrize(
    ("script", "code", "retryable", "status"),
    [
        ("!fail 401", "provider-auth", False, 401),
        ("!fail 403", "provider-auth", False, 403),
        ("!fail 400 nonsense", "provider-error", False, 400),
        ("!fail 404", "provider-error", False, 404),
        ("!fail 429 retry-after=1", "provider-rate-limit", True, 429),
        ("!fail 500 retry-after=1", "provider-error", True, 500),
    ],
    ids=["401", "403", "400", "404", "429", "500"],
)
async def test_refusals_of_the_provider(run: Any, script: str, code: str, retryable: bool, status: int) -> None:
    with pytest.raises(ExecutorError) as caught:
        await run(f"x\n{script}")
    error = caught.value
    assert (error.code, error.retryable) == (code, retryable)
    assert error.details == {"status": status}
    assert error.trajectory is not None
    assert error.trajectory.events[0].type == "user_message"
    assert any(event.type == "error" for event in error.trajectory.events)


async def test_a_refusal_after_work_is_the_agents_own_end(run: Any) -> None:
    script = 'x\n!tool bash {"command": "true", "description": "d"}\n!fail 400 nonsense'
    trajectory = await run(script)
    assert trajectory.end_reason == "error"
    assert any(event.type == "error" for event in trajectory.events)
    with pytest.raises(ExecutorError) as caught:
        await run('x\n!tool bash {"command": "true", "description": "d"}\n!fail 401')
    assert caught.value.code == "provider-auth"
    assert caught.value.trajectory is not None
    assert any(event.type == "tool_result" for event in caught.value.trajectory.events)


async def test_no_connection_to_the_provider(run: Any, provider: Any) -> None:
    with pytest.raises(ExecutorError, match="Could not connect") as caught:
        await run("x", config={"provider": provider(baseUrl="http://127.0.0.1:1/v1")})
    assert (caught.value.code, caught.value.retryable) == ("provider-error", True)


async def test_the_log_of_a_session_that_failed_is_kept(run: Any, tmp_path: Path) -> None:
    log = tmp_path / "kept.jsonl"
    with pytest.raises(ExecutorError) as caught:
        await run('x\n!tool bash {"command": "true", "description": "d"}\n!fail 401', session_log=log)
    assert caught.value.trajectory is not None
    assert caught.value.trajectory.session_path == str(log)
    kinds = [json.loads(line)["type"] for line in log.read_text().splitlines()]
    assert "tool.execution_complete" in kinds
    assert kinds[-1] == "session.error"


async def test_a_failing_call_that_is_repeated_is_counted(run: Any) -> None:
    trajectory = await run("x\n!fail 500 times=1 retry-after=1\n!say y")
    assert trajectory.output == "y"
    assert trajectory.metadata["modelRetries"] == 1


async def interrupt(run: Any, trial_id: str) -> None:
    """What an agent does that interrupts its own turn."""
    (client,) = run.executor.pool.clients
    await client.sdk._client.request("session.abort", {"sessionId": trial_id})


async def test_an_agent_that_interrupts_itself_did_not_complete(run: Any, trial_id: str) -> None:
    ended: list[Trajectory] = []

    async def trial() -> None:
        ended.append(await run(SLEEP))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(trial)
        await until(lambda: sleeping(run))
        await interrupt(run, trial_id)
    (trajectory,) = ended
    assert trajectory.end_reason == "error"
    (error,) = [event.data for event in trajectory.events if event.type == "error"]
    assert error == {"message": "the agent interrupted its turn", "type": "aborted"}


async def test_an_agent_that_interrupts_itself_before_it_did_anything(run: Any, trial_id: str) -> None:
    def asking() -> bool:
        clients = run.executor.pool.clients
        log = session_file(clients[0].settings.copilot_home, trial_id) if clients else None
        return log is not None and log.is_file() and "assistant.turn_start" in log.read_text()

    async def meanwhile() -> None:
        await until(asking)
        await interrupt(run, trial_id)

    error, _ = await failing(run, "x\n!sleep 600\n!say y", meanwhile)
    assert (error.message, error.code, error.retryable) == ("the agent interrupted its turn", "agent-protocol", False)


async def test_a_killed_runtime_is_noticed_at_once(run: Any) -> None:
    async def kill() -> None:
        await until(lambda: sleeping(run))
        os.kill(runtime_of(run).pid, signal.SIGKILL)

    log = run.directory / "kept.jsonl"
    error, seconds = await failing(run, SLEEP, kill, session_log=log)
    assert "tool.execution_start" in log.read_text()
    assert (error.code, error.retryable) == ("agent-crashed", True)
    assert "-9" in error.message
    assert seconds < 5, "the limit is 2 s, on a machine that does nothing else"
    assert error.trajectory is not None
    kinds = [event.type for event in error.trajectory.events]
    assert "tool_call" in kinds
    assert kinds[-1] == "error"
    assert error.trajectory.metadata["executorVersion"]
    again = await run("x\n!say again")
    assert again.output == "again"


async def test_a_runtime_that_kills_itself_before_the_first_turn(run: Any, tmp_path: Path) -> None:
    fake = tmp_path / "copilot-runtime"
    fake.write_text("#!/bin/sh\necho no such luck >&2\nexit 7\n")
    fake.chmod(0o755)
    with pytest.raises(ExecutorError, match="the Copilot runtime did not start: CLI process exited") as caught:
        await run("x", process_env={"COPILOT_CLI_PATH": str(fake)})
    assert (caught.value.code, caught.value.retryable) == ("agent-start-failed", True)
    assert caught.value.details == {"stderr": "no such luck"}
    assert caught.value.trajectory is not None


async def test_a_runtime_that_closes_its_pipes_before_it_ends(run: Any, tmp_path: Path) -> None:
    fake = tmp_path / "copilot-runtime"
    fake.write_text("#!/bin/sh\nexec <&- >&- 2>&-\nsleep 0.3\nexit 7\n")
    fake.chmod(0o755)
    with pytest.raises(ExecutorError, match=r"did not start: CLI process exited( with code 7)?$"):
        await run("x", process_env={"COPILOT_CLI_PATH": str(fake)})


async def test_the_exit_code_is_told_when_the_sdk_looked_too_early(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from copilot._jsonrpc import JsonRpcClient

    monkeypatch.setattr(JsonRpcClient, "_get_process_exit_error", lambda _: "CLI process exited unexpectedly")

    async def kill() -> None:
        await until(lambda: sleeping(run))
        os.kill(runtime_of(run).pid, signal.SIGKILL)

    error, _ = await failing(run, SLEEP, kill)
    assert error.message == "the Copilot runtime exited with code -9"


async def test_a_runtime_that_stops_answering(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "PING_LIMIT_S", 0.3)
    monkeypatch.setattr(clients, "STOP_LIMIT_S", 0.3)

    async def halt() -> None:
        await until(lambda: sleeping(run))
        runtime_of(run).suspend()

    error, _ = await failing(run, SLEEP, halt)
    assert (error.code, error.retryable) == ("session-lost", True)
    assert "did not answer 3 times in a row" in error.message


async def test_a_timeout_ends_a_command_and_keeps_what_there_is(run: Any) -> None:
    stop = StopSignal()
    ended: list[float] = []

    async def stop_it() -> None:
        await until(lambda: sleeping(run))
        ended.append(time.monotonic())
        stop.set("timeout")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_it)
        trajectory = await run(SLEEP, stop=stop)
    assert time.monotonic() - ended[0] < 5, "the limit is 2 s, on a machine that does nothing else"
    assert trajectory.end_reason == "agent_timeout"
    assert "tool_call" in [event.type for event in trajectory.events]
    assert is_gone(run)


async def test_the_session_is_stopped_at_the_agents_own_limit(run: Any) -> None:
    await run("the first one imports the SDK\n!say y")
    trajectory = await run(SLEEP, "never sent", max_agent_duration_ms=5000)
    assert trajectory.end_reason == "agent_timeout"
    assert [event.type for event in trajectory.events].count("user_message") == 1


async def test_a_stop_while_servers_come_up(run: Any) -> None:
    from vally import McpServer

    words = ("-c", "echo $$ > busy; exec sleep 600")
    trajectory = await run(
        "x",
        mcp_servers={"slow": McpServer(name="slow", type="stdio", command="/bin/sh", args=words)},
        max_agent_duration_ms=1000,
    )
    assert trajectory.end_reason == "agent_timeout"
    assert not [event for event in trajectory.events if event.type == "user_message"]
    await until(lambda: not sleeping(run) or is_gone(run))


async def test_results_that_the_sdk_drops_are_read_from_the_file(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from copilot.session import CopilotSession

    handed_on = CopilotSession._dispatch_event
    seen: list[Any] = []

    def drop_every_second(self: Any, event: Any) -> None:
        if event.type.value == "tool.execution_complete":
            seen.append(event)
            if len(seen) % 2 == 0:
                return
        handed_on(self, event)

    monkeypatch.setattr(CopilotSession, "_dispatch_event", drop_every_second)
    script = "x\n" + "".join(f'!tool bash {{"command": "echo number {n}", "description": "d"}}\n' for n in range(6))
    warnings: list[str] = []
    trajectory = await run(script + "!say y", warn=warnings.append)
    assert len(seen) == 6
    pairs = [event for event in trajectory.events if event.type in ("tool_call", "tool_result")]
    assert [event.type for event in pairs] == ["tool_call", "tool_result"] * 6
    results = [event.data["result"].splitlines()[0] for event in pairs if event.type == "tool_result"]
    assert results == [f"number {n}" for n in range(6)]
    assert warnings == ["3 tool results, 0 usage records were read from the session file"]
    assert trajectory.metrics.tool_call_count == 6
    assert trajectory.metrics.wall_time_ms > 0


async def test_events_that_the_sdk_cannot_read_are_not_lost(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from copilot import client as sdk

    read = sdk.session_event_from_dict

    def fail_at_results(value: dict[str, Any]) -> Any:
        if value["type"] == "tool.execution_complete":
            raise ValueError("'odd' is not a valid Kind")
        return read(value)

    monkeypatch.setattr(sdk, "session_event_from_dict", fail_at_results)
    warnings: list[str] = []
    script = 'x\n!tool bash {"command": "echo one", "description": "d"}\n!say y'
    trajectory = await run(script, warn=warnings.append)
    (result,) = [event.data for event in trajectory.events if event.type == "tool_result"]
    assert result["result"].startswith("one\n")
    assert not warnings


async def test_usage_that_the_sdk_drops_is_read_from_the_file(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from copilot.session import CopilotSession

    handed_on = CopilotSession._dispatch_event

    def drop_usage(self: Any, event: Any) -> None:
        if event.type.value != "assistant.usage":
            handed_on(self, event)

    monkeypatch.setattr(CopilotSession, "_dispatch_event", drop_usage)
    warnings: list[str] = []
    trajectory = await run(
        'x\n!usage 10 1\n!tool bash {"command": "true", "description": "d"}\n!usage 20 2\n!say y', warn=warnings.append
    )
    assert trajectory.metrics.token_usage.input_tokens == 30
    assert trajectory.metrics.token_usage.call_count == 2
    assert warnings == ["0 tool results, 2 usage records were read from the session file"]


async def test_a_late_end_of_the_turn_before_ends_nothing(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = waiting.TurnWatch.begin
    late = {"type": "session.idle", "ephemeral": True, "data": {}}

    def begin_with_an_echo(self: waiting.TurnWatch) -> None:
        begin(self)
        self.feed(late)

    monkeypatch.setattr(waiting.TurnWatch, "begin", begin_with_an_echo)
    trajectory = await run("one\n!say first", "two\n!sleep 0.3\n!say second")
    assert trajectory.output == "second"


async def test_without_a_login_the_executor_is_unavailable(run: Any) -> None:
    with pytest.raises(ExecutorError, match="not signed in to GitHub Copilot; set COPILOT_GITHUB_TOKEN") as caught:
        await run("x", config={"provider": None})
    assert (caught.value.code, caught.value.retryable) == ("executor-unavailable", False)


async def test_a_token_that_github_does_not_know(run: Any) -> None:
    """What the token is good for only GitHub knows; here it must neither be shown nor reach a process."""
    token = "gho_canary0canary1canary2canary3canary4"
    env = {"GH_TOKEN": token}
    stop = StopSignal()
    found: list[Any] = []

    async def trial() -> None:
        try:
            found.append(await run("x", config={"provider": None}, process_env=env, model="gpt-5", stop=stop))
        except ExecutorError as error:
            found.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(trial)
        with anyio.move_on_after(10):
            await until(lambda: found)
        stop.set("timeout")
    assert token not in str(found[0])
    trajectory = getattr(found[0], "trajectory", None) or found[0]
    assert token not in trajectory.model_dump_json()


async def test_shutting_down_ends_a_trial(run: Any, llm: MockLlm) -> None:
    async def shut_down() -> None:
        await until(lambda: sleeping(run))
        await run.executor.shutdown()

    error, _ = await failing(run, SLEEP, shut_down)
    assert error.code == "session-lost"
    with pytest.raises(ExecutorError, match="was shut down"):
        await run("x")
    assert json.dumps(llm.requests[-1].body)
