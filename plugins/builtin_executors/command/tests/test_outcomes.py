"""How the end of an agent that speaks a JSON dialect becomes the outcome of a trial."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from vally import ExecutorError, McpServer, Skill, Trajectory

pytestmark = pytest.mark.anyio
Agent = Callable[..., str]
Execute = Callable[..., Awaitable[Trajectory]]

SAID = {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "hi"}]}}
INIT = {"type": "system", "subtype": "init", "session_id": "s", "mcp_servers": [], "skills": ["greeter"]}
DONE = {"type": "result", "subtype": "success", "is_error": False, "session_id": "s"}


@pytest.fixture
def says(agent: Agent) -> Callable[..., str]:
    """Make an agent that writes these lines, and something to stderr, and ends with a code."""

    def make(*lines: object, code: int = 0, stderr: str = "", stay: bool = False) -> str:
        text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        body = f"import sys, time\nsys.stdout.write({text!r}); sys.stdout.flush()\nsys.stderr.write({stderr!r})\n"
        return agent(body + ("time.sleep(600)\n" if stay else f"sys.exit({code})\n"))

    return make


async def error_of(execute: Execute, config: dict[str, Any], **options: Any) -> ExecutorError:
    with pytest.raises(ExecutorError) as caught:
        await execute(config, **options)
    assert caught.value.trajectory is not None
    return caught.value


async def test_dx_3_a_result_that_is_an_error(execute: Execute, says: Callable[..., str]) -> None:
    result = {**DONE, "is_error": True, "api_error_status": 400, "result": "API Error: 400 no"}
    error = await error_of(execute, {"command": [says(INIT, result, code=1)], "dialect": "claude"})
    assert (error.code, error.retryable, error.message) == ("provider-error", False, "API Error: 400 no")
    assert error.details is not None
    assert (error.details["status"], error.details["exitCode"]) == (400, 1)


def starts(agent: Agent, *, ends: str = "") -> str:
    """An agent that starts the server that it is told of, and says what it hears from it."""
    return agent(
        "import json, subprocess, sys, time\n"
        "(told,) = json.load(open(sys.argv[1]))['mcpServers'].values()\n"
        "server = subprocess.Popen([told['command'], *told['args']], stdin=-1, stdout=-1, text=True)\n"
        f"{ends}\n"
        "print(server.stdout.readline(), end='', flush=True)\n"
        "server.stdin.close()\n"
        "server.wait()\n"
    )


@pytest.mark.parametrize(
    ("code", "fields", "told"),
    [
        ("sys.exit('no database')", {}, "it ended with exit code 1: no database"),
        ("print('a line', flush=True); time.sleep(600)", {"timeout_ms": 300}, "it did not come up within 0.3s"),
        ("", {"cwd": "/no/such/place"}, "it ended with exit code 1: "),
    ],
)
async def test_an_mcp_server_that_does_not_come_up(
    execute: Execute, agent: Agent, code: str, fields: dict[str, Any], told: str
) -> None:
    server = McpServer(
        name="calc", type="stdio", command=sys.executable, args=("-c", f"import sys, time; {code}"), **fields
    )
    config = {"command": [starts(agent, ends="time.sleep(600)"), "{mcp_config}"]}
    error = await error_of(execute, config, mcp_servers={"calc": server})
    assert error.message.startswith(f"MCP server 'calc' failed: {told}")
    assert (error.code, error.retryable) == ("mcp-server-failed", False)


@pytest.mark.parametrize(("code", "warned"), [("sys.stdin.read()", False), ("sys.exit('tired')", True)])
async def test_an_mcp_server_that_ends_later(execute: Execute, agent: Agent, code: str, warned: bool) -> None:
    warnings: list[str] = []
    server = McpServer(
        name="calc",
        type="stdio",
        command=sys.executable,
        args=("-c", f"import sys; print('{{}}', flush=True); {code}"),
    )
    wait = "server.wait(60); time.sleep(2)" if warned else ""
    config = {"command": [starts(agent, ends=wait), "{mcp_config}"]}
    trajectory = await execute(config, mcp_servers={"calc": server}, warn=warnings.append)
    assert trajectory.output == "{}\n"
    ended = "MCP server 'calc' ended while the agent worked: it ended with exit code 1: tired"
    assert warnings == ([ended] if warned else [])


@pytest.mark.parametrize("cut", [0, 1, 2])
async def test_an_output_that_breaks_off_is_no_answer(execute: Execute, says: Callable[..., str], cut: int) -> None:
    lines = [
        {"type": "tool_use", "tool_name": "t", "tool_id": "1", "parameters": {}},
        {"type": "tool_result", "tool_id": "1", "status": "success", "output": "x" * 100},
        {"type": "message", "role": "assistant", "content": "Done."},
        {"type": "result", "status": "success"},
    ]
    written = [*lines[: 3 - cut], json.dumps(lines[3 - cut])[:20]]
    config = {"command": [says(*written)], "dialect": "gemini"}
    if cut == 0:  # only what ends the turn is missing
        assert (await execute(config)).end_reason == "completed"
        return
    error = await error_of(execute, config)
    assert error.message == "the agent ended in order, but its output breaks off in the middle of a turn"
    assert (error.code, error.retryable) == ("agent-protocol", False)


async def test_dx_5_an_error_after_a_tool_call(execute: Execute, says: Callable[..., str]) -> None:
    lines = (
        {"type": "tool_use", "tool_name": "t", "tool_id": "1", "parameters": {}},
        {"type": "tool_result", "tool_id": "1", "status": "success"},
        {"type": "result", "status": "error", "error": {"type": "unknown", "message": "it broke"}},
    )
    trajectory = await execute({"command": [says(*lines, code=144)], "dialect": "gemini"})
    assert trajectory.end_reason == "error"
    assert trajectory.events[-1].data == {"message": "it broke"}


@pytest.mark.parametrize(
    ("lines", "code", "expected"),
    [
        ([], 1, ("agent-start-failed", True)),
        (["usage: claude"], 2, ("agent-start-failed", True)),
        ([INIT], 1, ("agent-crashed", True)),
        ([INIT, {**DONE, "is_error": True, "result": "no idea"}], 1, ("agent-protocol", False)),
        ([INIT, {**DONE, "is_error": True, "result": "Connection error: ECONNREFUSED"}], 1, ("provider-error", True)),
        ([], 0, ("agent-protocol", False)),
        (["usage: claude"], 0, ("agent-protocol", False)),
    ],
    ids=["nothing", "usage", "begun", "no reason", "no connection", "nothing, in order", "usage, in order"],
)
async def test_an_agent_that_did_nothing(
    execute: Execute, says: Callable[..., str], lines: list[object], code: int, expected: tuple[str, bool]
) -> None:
    error = await error_of(execute, {"command": [says(*lines, code=code)], "dialect": "claude"})
    assert (error.code, error.retryable) == expected
    if code == 0 and lines:
        assert error.details is not None
        assert error.details["line"] == "usage: claude"


UNFINISHED: dict[str, tuple[object, ...]] = {
    "copilot": ({"type": "assistant.message", "data": {"content": "hi"}},),
    "claude": (INIT, SAID),
    "codex": ({"type": "thread.started"}, {"type": "item.completed", "item": {"type": "agent_message", "text": "hi"}}),
    "gemini": ({"type": "message", "role": "assistant", "content": "hi"},),
    "opencode": ({"type": "text", "part": {"text": "hi"}}, {"type": "step_finish", "part": {"reason": "tool-calls"}}),
}


@pytest.mark.parametrize("dialect", UNFINISHED)
async def test_a_wrapper_whose_agent_was_killed(execute: Execute, says: Callable[..., str], dialect: str) -> None:
    config = {"command": [says(*UNFINISHED[dialect], code=1)], "dialect": dialect}
    error = await error_of(execute, config)
    assert (error.code, error.retryable) == ("agent-crashed", True)
    assert error.trajectory is not None
    assert error.trajectory.output == "hi"
    # What ends in order is taken as it is.
    assert (await execute({**config, "command": [says(*UNFINISHED[dialect])]})).output == "hi"


async def test_a_limit_of_the_agent_ends_the_session_and_is_no_error(
    execute: Execute, says: Callable[..., str]
) -> None:
    program = says(INIT, SAID, {**DONE, "subtype": "error_max_turns", "is_error": True}, code=1)
    trajectory = await execute({"command": [program], "continueCommand": [program], "dialect": "claude"}, "a", "b")
    assert (trajectory.end_reason, trajectory.output) == ("budget", "hi")
    assert [event.data["content"] for event in trajectory.events if event.type == "user_message"] == ["a"]


async def test_a_provider_that_refuses_until_the_time_is_over(execute: Execute, says: Callable[..., str]) -> None:
    retry = {"type": "system", "subtype": "api_retry", "error_status": 401, "error": "authentication_failed"}
    config = {"command": [says(INIT, retry, stay=True)], "dialect": "claude"}
    error = await error_of(execute, config, timeout_ms=1500)
    assert (error.code, error.retryable) == ("provider-auth", False)
    assert "trying again when its time was over" in error.message
    quiet = {"command": [says({"type": "init"}, stderr="Attempt 3 failed with status 429.\n", stay=True)]}
    error = await error_of(execute, {**quiet, "dialect": "gemini"}, timeout_ms=1500)
    assert error.code == "provider-rate-limit"


@pytest.mark.parametrize(
    ("told", "status", "retryable"),
    [
        ('{"code":402,"message":"upstream says no"}', 402, False),
        ('{"error": {"code": "503", "message": "busy"}}', 503, True),
        ("Failed to get response from the AI model; retried 5 times. Last error: upstream says no", None, True),
        ("[API Error: Incomplete JSON segment at the end]", None, True),
        ("API Error: API returned an empty or malformed response (HTTP 200)", None, True),
    ],
)
async def test_an_error_of_the_endpoint_that_the_agent_repeats(
    execute: Execute, says: Callable[..., str], told: str, status: int | None, retryable: bool
) -> None:
    lines = (
        {"type": "tool_use", "tool_name": "t", "tool_id": "1", "parameters": {}},
        {"type": "tool_result", "tool_id": "1", "status": "success"},
        {"type": "result", "status": "error", "error": {"type": "unknown", "message": told}},
    )
    error = await error_of(execute, {"command": [says(*lines, code=1)], "dialect": "gemini"})
    assert (error.code, error.retryable, (error.details or {}).get("status")) == ("provider-error", retryable, status)


async def test_a_connection_that_fails_until_the_time_is_over(execute: Execute, says: Callable[..., str]) -> None:
    again = {"type": "error", "message": "Reconnecting... 2/5 (error sending request)"}
    config = {"command": [says({"type": "thread.started"}, again, stay=True)], "dialect": "codex"}
    error = await error_of(execute, config, timeout_ms=1500)
    assert (error.code, error.retryable) == ("provider-error", True)


@pytest.mark.parametrize("said", ["result", "stderr"])
async def test_an_agent_without_a_login(execute: Execute, says: Callable[..., str], said: str) -> None:
    lines = (INIT, {**DONE, "is_error": True, "result": "Not logged in"}) if said == "result" else ()
    program = says(*lines, stderr="" if lines else "Please set an Auth method in settings.json", code=1)
    error = await error_of(execute, {"command": [program], "dialect": "claude"})
    assert (error.code, error.retryable, "'passEnv'" in error.message) == ("executor-unavailable", False, True)


async def test_an_agent_that_is_stopped_while_it_works_has_a_trajectory(
    execute: Execute, says: Callable[..., str]
) -> None:
    config = {"command": [says(INIT, SAID, stderr="status: 429", stay=True)], "dialect": "claude"}
    trajectory = await execute(config, timeout_ms=1500)
    assert (trajectory.end_reason, trajectory.output) == ("agent_timeout", "hi")


async def test_an_mcp_server_that_failed_is_an_error_whatever_the_agent_did(
    execute: Execute, says: Callable[..., str]
) -> None:
    failed = {**INIT, "mcp_servers": [{"name": "calc", "status": "failed", "error": "exit code 4"}]}
    config = {"command": [says(failed, SAID, DONE)], "dialect": "claude"}
    error = await error_of(execute, config, mcp_servers={"calc": McpServer(name="calc", type="stdio", command="x")})
    assert (error.code, error.message) == ("mcp-server-failed", "MCP server 'calc' failed: exit code 4")


async def test_an_offered_skill_that_the_agent_does_not_have(
    execute: Execute, says: Callable[..., str], work_dir: Any
) -> None:
    def skill(name: str) -> Skill:
        path = work_dir / name / "SKILL.md"
        return Skill(name=name, description="", path=path, raw_content="", frontmatter={})

    config = {"command": [says(INIT, SAID, DONE)], "dialect": "claude"}
    trajectory = await execute(config, skills=(skill("greeter"),))
    assert (trajectory.metadata["skillsLoaded"], trajectory.metadata["otherSkills"]) == (["greeter"], [])
    error = await error_of(execute, config, skills=(skill("greeter"), skill("other")))
    assert (error.code, "'other'" in error.message) == ("skill-not-loaded", True)


async def test_a_copy_of_a_skill_that_is_read_counts(execute: Execute, says: Callable[..., str], work_dir: Any) -> None:
    path = work_dir / "greeter" / "SKILL.md"
    offered = Skill(name="greeter", description="", path=path, raw_content="", frontmatter={})
    command = "cat .agents/skills/greeter/SKILL.md"
    item = {"id": "1", "type": "command_execution", "command": command, "exit_code": 0, "status": "completed"}
    lines = ({"type": "item.completed", "item": item}, {"type": "turn.completed"})
    config = {"command": [says(*lines)], "dialect": "codex"}
    trajectory = await execute({**config, "skillsDir": ".agents/skills"}, skills=(offered,))
    (found,) = [event.data for event in trajectory.events if event.type == "skill_activation"]
    assert found["name"] == "greeter"
    assert trajectory.metadata["skillsLoaded"] == ["greeter"]


async def test_tokens_of_a_stream_that_names_no_model_are_those_of_the_trial(
    execute: Execute, says: Callable[..., str]
) -> None:
    usage = {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 1}}
    config = {"command": [says({"type": "thread.started", "thread_id": "t"}, usage)], "dialect": "codex"}
    trajectory = await execute(config, model="the-model")
    assert trajectory.metadata["sessionID"] == "t"
    assert trajectory.metrics is not None
    assert list(trajectory.metrics.token_usage.by_model) == ["the-model"]
