"""Sessions with an agent that follows a script: prompts, permissions, stops, failures, and what the agent is told."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from endpoints import nobody

from vally import Attachment, ExecutorError, LocalProcessRunner, McpServer, Skill, StopSignal, Trajectory, TurnComplete

pytestmark = pytest.mark.anyio
FAKE = Path(__file__).with_name("fake_agent.py")
NO_SESSION = "the agent opened no session: its answer has no sessionId"
INFO = {"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": {"name": "fake", "version": "7"}}


@pytest.fixture
def agent(tmp_path: Path) -> Callable[..., list[str]]:
    """The command line of an agent that follows a script."""

    def make(*prompts: list[dict[str, Any]], **script: Any) -> list[str]:
        path = tmp_path / "script.json"
        log, answers = str(tmp_path / "log.jsonl"), str(tmp_path / "answers.jsonl")
        steps = {"prompts": prompts} if prompts else {}
        path.write_text(json.dumps({"log": log, "answers": answers, **steps, **script}))
        return [sys.executable, str(FAKE), str(path)]

    return make


@pytest.fixture
def heard(tmp_path: Path) -> Callable[[str], list[Any]]:
    """The parameters of all requests of a method that the agent got."""

    def read(method: str) -> list[Any]:
        messages = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
        return [message["params"] for message in messages if message.get("method") == method]

    return read


@pytest.fixture
def answers(tmp_path: Path) -> Callable[[], list[Any]]:
    """What the agent was told about its requests."""

    def read() -> list[Any]:
        return [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]

    return read


def of(trajectory: Trajectory, *types: str) -> list[dict[str, Any]]:
    return [event.data for event in trajectory.events if event.type in types]


def said(text: str) -> dict[str, Any]:
    return {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}


def call(**facts: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": "tool_call", "toolCallId": "a", **facts}}


def ended(**facts: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "completed", **facts}}


async def test_prompts_follow_each_other_in_one_session(execute: Any, agent: Any, heard: Any, work_dir: Path) -> None:
    seen: list[TurnComplete] = []

    async def on_turn_complete(done: TurnComplete) -> None:
        seen.append(done)

    usage = {"result": {"stopReason": "end_turn", "usage": {"inputTokens": 5, "outputTokens": 2}}}
    trajectory = await execute(
        {"command": agent([{"text": "You said ${PROMPT}"}, usage])}, "one", "two", on_turn_complete=on_turn_complete
    )
    assert [event["content"] for event in of(trajectory, "assistant_message")] == ["You said one", "You said two"]
    assert seen == [TurnComplete(0, False), TurnComplete(1, True)]
    assert {event.turn for event in trajectory.events} == {0, 1}
    assert [data["inputTokens"] for data in of(trajectory, "token_usage")] == [5, 5]
    assert trajectory.end_reason == "completed"
    assert heard("session/new") == [{"cwd": str(work_dir), "mcpServers": []}]
    (hello,) = heard("initialize")
    assert hello["protocolVersion"] == 1
    assert hello["clientCapabilities"]["fs"] == {"readTextFile": False, "writeTextFile": False}
    metadata = trajectory.metadata
    assert (metadata["executor"], metadata["executorVersion"], metadata["agentName"]) == ("acp", "7", "fake")
    assert metadata["sessionID"] == "s1"


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("end_turn", "completed"),
        ("max_tokens", "budget"),
        ("max_turn_requests", "budget"),
        ("refusal", "refused"),
        ("never_heard_of", "completed"),
    ],
)
async def test_how_a_prompt_ends_the_session(execute: Any, agent: Any, reason: str, end: str) -> None:
    trajectory = await execute({"command": agent([{"text": "Hm."}, {"result": {"stopReason": reason}}])})
    assert trajectory.end_reason == end


async def test_a_message_that_is_no_utf_8(execute: Any, agent: Any) -> None:
    line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s1", **said("caf!")}})
    trajectory = await execute({"command": agent([{"raw": line.replace("!", "\udcc3") + "\n"}, said(" bar")])})
    assert trajectory.output == "caf\ufffd bar"


async def test_an_agent_that_interrupts_itself_did_not_complete(execute: Any, agent: Any, heard: Any) -> None:
    seen: list[TurnComplete] = []

    async def on_turn_complete(done: TurnComplete) -> None:
        seen.append(done)

    interrupted = {"result": {"stopReason": "cancelled"}}
    command = {"command": agent([{"text": "First I will"}, interrupted])}
    trajectory = await execute(command, "one", "two", on_turn_complete=on_turn_complete)
    assert (trajectory.end_reason, trajectory.output) == ("error", "First I will")
    assert of(trajectory, "error") == [{"message": "the agent interrupted its turn", "type": "aborted"}]
    assert seen == []
    assert len(heard("session/prompt")) == 1

    with pytest.raises(ExecutorError, match="the agent interrupted its turn") as caught:
        await execute({"command": agent([interrupted])})
    assert (caught.value.code, caught.value.retryable) == ("agent-protocol", False)


ASK = {"toolCallId": "a", "kind": "execute", "title": "rm -rf build", "rawInput": {"command": "rm -rf build"}}
OPTIONS = [
    {"optionId": "always", "kind": "allow_always", "name": "Always"},
    {"optionId": "once", "kind": "allow_once", "name": "Once"},
    {"optionId": "never", "kind": "reject_always", "name": "Never"},
    {"optionId": "no", "kind": "reject_once", "name": "No"},
]


@pytest.mark.parametrize(
    ("policy", "options", "chosen"),
    [
        ("allow-all", OPTIONS, "once"),
        ("allow-all", OPTIONS[:1], "always"),
        ("allow-all", OPTIONS[2:], None),
        ("deny-all", OPTIONS, "no"),
        ("deny-all", OPTIONS[:3], "never"),
        ("deny-all", OPTIONS[:2], None),
        ({"default": "deny"}, OPTIONS, "no"),
        ({"default": "deny", "rules": [{"kind": "execute", "decision": "allow"}]}, OPTIONS, "once"),
        ({"default": "allow", "rules": [{"kind": "execute", "match": "^rm ", "decision": "deny"}]}, OPTIONS, "no"),
        ({"default": "allow", "rules": [{"kind": "execute", "match": "^ls", "decision": "deny"}]}, OPTIONS, "once"),
        ({"default": "allow", "rules": [{"kind": "edit", "decision": "deny"}]}, OPTIONS, "once"),
    ],
)
async def test_permissions(execute: Any, agent: Any, answers: Any, policy: Any, options: Any, chosen: Any) -> None:
    command = agent([{"ask": {"toolCall": ASK, "options": options}}, {"text": "Ok."}])
    trajectory = await execute({"command": command, "permissions": policy})
    outcome = {"outcome": "cancelled"} if chosen is None else {"outcome": "selected", "optionId": chosen}
    assert [item["result"]["outcome"] for item in answers()] == [outcome]
    results = of(trajectory, "tool_result")
    assert [item.get("errorCode") for item in results] == (
        ["denied"] if chosen in ("no", "never") else results[:0]
    ) or (policy == "deny-all" and chosen is None)
    assert trajectory.output == "Ok."


async def test_files_and_terminals_are_not_offered(execute: Any, agent: Any, answers: Any) -> None:
    trajectory = await execute(
        {"command": agent([{"ask": {"method": "fs/write_text_file", "path": "/x"}}, {"text": "Ok."}])}
    )
    assert [item["error"]["code"] for item in answers()] == [-32601]
    assert trajectory.output == "Ok."


MODES = {"modes": {"currentModeId": "one", "availableModes": [{"id": "one"}, {"id": "two"}]}}


async def test_a_mode_is_set(execute: Any, agent: Any, heard: Any) -> None:
    await execute({"command": agent(session=MODES), "mode": "two"})
    assert heard("session/set_mode") == [{"sessionId": "s1", "modeId": "two"}]
    await execute({"command": agent(session=MODES), "mode": "one"})
    assert len(heard("session/set_mode")) == 1


@pytest.mark.parametrize(("session", "known"), [(MODES, "; it has one, two"), ({}, "")])
async def test_a_mode_that_is_not_there(execute: Any, agent: Any, session: Any, known: str) -> None:
    with pytest.raises(ExecutorError) as caught:
        await execute({"command": agent(session=session), "mode": "three"})
    assert caught.value.message == f"the agent has no mode 'three'{known}"
    assert caught.value.code == "unsupported-option"


async def test_authentication(execute: Any, agent: Any, heard: Any) -> None:
    await execute({"command": agent(), "auth": "api-key"})
    assert heard("authenticate") == [{"methodId": "api-key"}]
    methods = {**INFO, "authMethods": [{"id": "login"}, {"id": "key"}]}
    refused = {"error": {"code": -32602, "message": "no such method"}}
    with pytest.raises(ExecutorError, match=r"by 'api-key': no such method; it knows login, key") as caught:
        await execute({"command": agent(initialize=methods, mode=refused), "auth": "api-key"})
    assert caught.value.code == "executor-unavailable"
    wanted = {"error": {"code": -32000, "message": "Authentication required"}}
    with pytest.raises(ExecutorError, match=r"wants a login: .*; set 'auth' to one of: login, key") as caught:
        await execute({"command": agent(initialize=methods, session=wanted)})
    assert (caught.value.code, caught.value.retryable) == ("executor-unavailable", False)


async def test_the_agents_environment(execute: Any, agent: Any, tmp_path: Path, work_dir: Path) -> None:
    config = {
        "command": [*agent([{"shell": "env > seen; pwd >> seen"}, {"text": "Ok."}]), "{model}"],
        "env": {"OWN": "for {model}"},
        "passEnv": ["PASSED"],
    }
    fields = {"model": "scripted", "process_env": {"PASSED": "yes", "OTHER": "no", "A_TOKEN": "x"}}
    await execute(config, **fields)
    seen = (work_dir / "seen").read_text().splitlines()
    assert {"OWN=for scripted", "PASSED=yes", f"HOME={tmp_path}/trial/home", str(work_dir)} <= set(seen)
    assert not [line for line in seen if line.startswith(("OTHER", "A_TOKEN"))]


async def test_a_model_that_is_needed(execute: Any, agent: Any) -> None:
    with pytest.raises(ExecutorError, match="the agent needs a model") as caught:
        await execute({"command": [*agent(), "{model}"]})
    assert caught.value.code == "executor-config"


@pytest.mark.parametrize(("reason", "end"), [("cancelled", "cancelled"), ("timeout", "agent_timeout")])
async def test_a_stop_is_a_cancellation(
    execute: Any, agent: Any, heard: Any, work_dir: Path, reason: str, end: str
) -> None:
    command = agent([call(kind="execute"), {"shell": "touch begun; sleep 600 & echo $! > pid"}, {"sleep": 600}])
    trajectory = await stopped(execute, command, work_dir, reason)
    assert trajectory.end_reason == end
    assert heard("session/cancel") == [{"sessionId": "s1"}]
    assert len(of(trajectory, "tool_call")) == 1
    assert of(trajectory, "turn_end", "tool_result") == []


async def stopped(execute: Any, command: list[str], work_dir: Path, reason: str) -> Trajectory:
    """Run an agent that makes a file `begun`, and stop it then."""
    stop, found = StopSignal(), []

    async def run() -> None:
        found.append(await execute({"command": command}, stop=stop))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            while not (work_dir / "begun").exists():
                await anyio.sleep(0.01)
            stop.set(reason)
    trajectory: Trajectory = found[0]
    return trajectory


async def test_what_is_told_after_a_cancellation_is_heard(execute: Any, agent: Any, work_dir: Path) -> None:
    late = {"stopReason": "cancelled", "usage": {"inputTokens": 9, "outputTokens": 1}}
    command = agent([said("Working."), {"shell": "touch begun"}, {"sleep": 600}], cancelled=late)
    trajectory = await stopped(execute, command, work_dir, "cancelled")
    assert trajectory.output == "Working."
    assert [data["inputTokens"] for data in of(trajectory, "token_usage")] == [9]


@pytest.mark.parametrize("script", [{"initialize": None}, {"session": None}])
async def test_a_stop_while_the_agent_starts(execute: Any, agent: Any, tmp_path: Path, script: Any) -> None:
    stop, found = StopSignal(), []

    async def run() -> None:
        found.append(await execute({"command": agent(**script)}, stop=stop))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            while not (tmp_path / "log.jsonl").exists():
                await anyio.sleep(0.01)
            stop.set("cancelled")
    assert found[0].end_reason == "cancelled"


async def test_the_agents_own_limit_of_time(execute: Any, agent: Any) -> None:
    trajectory = await execute({"command": agent([{"sleep": 600}])}, max_agent_duration_ms=1000)
    assert trajectory.end_reason == "agent_timeout"


@pytest.mark.heavy
async def test_an_agent_that_does_not_hear_a_cancellation(execute: Any, agent: Any, work_dir: Path) -> None:
    command = agent([said("Working."), {"shell": "touch begun"}, {"deaf": 600}])
    trajectory = await stopped(execute, command, work_dir, "timeout")
    assert (trajectory.end_reason, trajectory.output) == ("agent_timeout", "Working.")


@pytest.mark.parametrize(
    ("step", "ending"),
    [
        ({"exit": 3}, "the agent ended with exit code 3: out of memory"),
        ({"kill": signal.SIGKILL}, "the agent was ended by SIGKILL: out of memory"),
    ],
)
@pytest.mark.parametrize("child", [[], [{"shell": "sleep 600 &"}]])
async def test_an_agent_that_dies(execute: Any, agent: Any, step: Any, ending: str, child: list[Any]) -> None:
    command = agent([said("So far."), *child, {"stderr": "starting\nout of memory\n"}, {"shell": "sleep 0.1"}, step])
    with anyio.fail_after(30), pytest.raises(ExecutorError) as caught:
        await execute({"command": command})
    error = caught.value
    assert (error.code, error.retryable, error.message) == ("agent-crashed", True, ending)
    assert error.details == {"stderr": "starting\nout of memory"}
    assert error.trajectory is not None
    assert error.trajectory.output == "So far."


@pytest.mark.parametrize(
    ("script", "message", "code"),
    [
        ({"exit": "no license"}, "the agent ended with exit code 1: no license", "agent-start-failed"),
        (
            {"initialize": {"error": {"code": -1, "message": "no"}}},
            "the agent cannot be used: no",
            "agent-start-failed",
        ),
        (
            {"session": {"error": {"code": -1, "message": "no"}}},
            "the agent opened no session: no",
            "agent-start-failed",
        ),
        (
            {"session": {"error": {"code": -32603, "message": "Internal error", "data": {"details": "no disk"}}}},
            "the agent opened no session: Internal error: no disk",
            "agent-start-failed",
        ),
        ({"session": {"sessionId": None}}, NO_SESSION, "agent-protocol"),
        ({"session": {"sessionId": 5}}, NO_SESSION, "agent-protocol"),
        ({"session": {"sessionId": ""}}, NO_SESSION, "agent-protocol"),
        (
            {"initialize": {**INFO, "protocolVersion": 9}},
            "the agent speaks version 9 of the protocol, not 1",
            "executor-unavailable",
        ),
    ],
)
async def test_an_agent_that_does_not_start(execute: Any, agent: Any, script: Any, message: str, code: str) -> None:
    with pytest.raises(ExecutorError) as caught:
        await execute({"command": agent(**script)})
    assert (caught.value.message, caught.value.code) == (message, code)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ({"initialize": None}, "the agent did not get ready within 1s"),
        ({"session": None}, "the agent opened no session within 1s"),
    ],
)
async def test_an_agent_that_does_not_get_ready(execute: Any, agent: Any, script: Any, message: str) -> None:
    with pytest.raises(ExecutorError) as caught:
        await execute({"command": agent(**script), "initTimeout": "1s"})
    error = caught.value
    assert (error.message, error.code, error.retryable) == (message, "agent-start-failed", True)


async def test_a_program_that_is_not_there(execute: Any) -> None:
    with pytest.raises(ExecutorError, match="cannot start 'no-such-agent'") as caught:
        await execute({"command": ["no-such-agent"]})
    assert (caught.value.code, caught.value.retryable) == ("executor-unavailable", False)


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        ({"code": -32603, "message": "Internal error: API Error: 429 slow down"}, "provider-rate-limit", True),
        ({"code": 503, "message": "overloaded"}, "provider-error", True),
        ({"code": -32603, "message": '{"error":{"code":400,"message":"bad"}}'}, "provider-error", False),
        ({"code": -32603, "message": "x", "data": {"statusCode": 403}}, "provider-auth", False),
        ({"code": -32603, "message": "connect ECONNREFUSED 127.0.0.1:9"}, "provider-error", True),
        ({"code": -32603, "message": "Failed to get response from the AI model; retried"}, "provider-error", True),
        ({"code": -32603, "message": "API returned an empty or malformed response"}, "provider-error", True),
        ({"code": -32000, "message": "Authentication required"}, "provider-auth", False),
        ({"code": -32603, "message": "I am confused"}, "agent-protocol", False),
        ("just text", "agent-protocol", False),
    ],
)
async def test_an_error_instead_of_an_answer(execute: Any, agent: Any, error: Any, code: str, retryable: bool) -> None:
    with pytest.raises(ExecutorError) as caught:
        await execute({"command": agent([{"error": error}])})
    assert (caught.value.code, caught.value.retryable) == (code, retryable)
    assert len(of(caught.value.trajectory, "error")) == 1  # type: ignore[arg-type]  # it has one


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"details": "the disk is full"}, "Internal error: the disk is full"),
        ({"status": "odd", "message": "the disk is full"}, "Internal error: the disk is full"),
        ("the disk is full", "Internal error: the disk is full"),
        ("Internal error", "Internal error"),
        ({"details": {"deep": 1}}, "Internal error"),
        ([1], "Internal error"),
        (None, "Internal error"),
    ],
)
async def test_the_cause_may_be_in_the_data_of_an_error(execute: Any, agent: Any, data: Any, message: str) -> None:
    with pytest.raises(ExecutorError) as caught:
        await execute({"command": agent([{"error": {"code": -32603, "message": "Internal error", "data": data}}])})
    assert (caught.value.message, caught.value.code) == (message, "agent-protocol")


async def test_a_status_in_the_data_of_an_error_counts(execute: Any, agent: Any) -> None:
    error = {"code": -32603, "message": "Internal error", "data": {"details": "API Error: 429 slow down"}}
    with pytest.raises(ExecutorError) as caught:
        await execute({"command": agent([{"error": error}])})
    assert (caught.value.code, caught.value.retryable) == ("provider-rate-limit", True)


async def test_an_error_of_the_agent_after_it_has_worked(execute: Any, agent: Any) -> None:
    trajectory = await execute(
        {"command": agent([said("So far."), {"error": {"code": -1, "message": "I am confused"}}])}
    )
    assert (trajectory.end_reason, trajectory.output) == ("error", "So far.")
    assert [data["message"] for data in of(trajectory, "error")] == ["I am confused"]


async def test_a_message_that_only_repeats_the_error_is_none(execute: Any, agent: Any) -> None:
    text = "API Error: 500 oops"
    with pytest.raises(ExecutorError) as caught:
        await execute({"command": agent([said(text), {"error": {"code": -1, "message": f"Internal error: {text}"}}])})
    assert caught.value.details == {"status": 500}
    assert of(caught.value.trajectory, "assistant_message") == []  # type: ignore[arg-type]  # it has one


async def test_lines_that_are_no_messages_are_left_out(execute: Any, agent: Any) -> None:
    noise = [
        "\n",
        "Welcome!\n",
        "[1, 2]\n",
        "{oops\n",
        '"text"\n',
        "7\n",
        '{"id": [1]}\n',
        '{"id": 99, "error": "x"}\n',
    ]
    huge = json.dumps({"jsonrpc": "2.0", "method": "x", "params": {"text": "é" * 200_000}}) + "\n"
    command = agent([*({"raw": line} for line in [*noise, huge]), said("Heard.")])
    assert (await execute({"command": command})).output == "Heard."


async def test_updates_of_other_sessions_are_not_heard(execute: Any, agent: Any) -> None:
    other = {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": "x", "update": said("No.")["update"]},
    }
    command = agent(
        [{"raw": json.dumps(other) + "\n"}, said("Yes.")], early=[{"sessionUpdate": "plan", "entries": [1]}]
    )
    trajectory = await execute({"command": command})
    assert trajectory.output == "Yes."
    assert {"eventType": "plan", "entries": [1]} in of(trajectory, "custom")


async def test_a_price_is_what_a_prompt_added_to_the_sum(execute: Any, agent: Any) -> None:
    def spent(amount: float) -> list[dict[str, Any]]:
        cost = {"sessionUpdate": "usage_update", "cost": {"amount": amount, "currency": "USD"}}
        return [said("."), {"update": cost}, {"result": {"usage": {"inputTokens": 1, "outputTokens": 1}}}]

    trajectory = await execute({"command": agent(spent(0.25), spent(1.0))}, "one", "two")
    assert [data["cost"]["amount"] for data in of(trajectory, "token_usage")] == [0.25, 0.75]
    assert trajectory.metrics.token_usage.cost.model_dump() == {"provider": "fake", "unit": "usd", "amount": 1.0}


async def test_skills_lie_where_the_agent_looks(
    execute: Any, agent: Any, offer: Callable[..., Skill], work_dir: Path
) -> None:
    place = work_dir / ".x" / "skills" / "greeting" / "SKILL.md"
    command = agent([call(kind="read", rawInput={"path": str(place)}), ended(), said("Hello.")])
    trajectory = await execute({"command": command, "skillsDir": ".x/skills"}, skills=(offer(),))
    assert place.read_text().endswith("Say hello.\n")
    (activation,) = of(trajectory, "skill_activation")
    assert (activation["name"], activation["path"]) == ("greeting", str(place))
    assert trajectory.metadata["skillsLoaded"] == ["greeting"]


async def test_a_skill_with_broken_frontmatter(execute: Any, agent: Any, offer: Callable[..., Skill]) -> None:
    skill = offer()
    skill.path.write_text("---\nname: [\n---\n")
    with pytest.raises(ExecutorError, match="skill 'greeting' cannot be loaded") as caught:
        await execute({"command": agent(), "skillsDir": "x"}, skills=(skill,))
    assert caught.value.code == "skill-not-loaded"


def stdio(name: str, *args: str, **fields: Any) -> dict[str, McpServer]:
    return {name: McpServer(name=name, type="stdio", command=sys.executable, args=args, **fields)}


UP = "print('{}', flush=True)"


async def test_mcp_servers_are_told_and_started_in_their_place(
    execute: Any, agent: Any, heard: Any, tmp_path: Path, work_dir: Path
) -> None:
    (tmp_path / "place").mkdir()
    code = f"import os; open('here', 'w').write(os.environ['A']); {UP}; import sys; sys.stdin.read()"
    servers = stdio("calc", "-c", code, env={"A": "b c"}, cwd=str(tmp_path / "place"))
    wait = f"for i in $(seq 200); do find {tmp_path} -name mcp-0.up | grep -q . && break; sleep 0.05; done"
    trajectory = await execute({"command": agent([{"servers": 1}, {"shell": wait}, said("Ok.")])}, mcp_servers=servers)
    assert trajectory.output == "Ok."
    assert (tmp_path / "place" / "here").read_text() == "b c"
    (session,) = heard("session/new")
    (told,) = session["mcpServers"]
    assert (told["name"], told["env"]) == ("calc", [{"name": "A", "value": "b c"}])
    assert trajectory.metadata["mcpServers"] == ["calc"]
    assert list(work_dir.iterdir()) == []


async def test_an_mcp_server_that_fails(execute: Any, agent: Any) -> None:
    servers = stdio("calc", "-c", "import sys; sys.exit('no database')")
    with pytest.raises(ExecutorError) as caught:
        await execute({"command": agent([said("Hm."), {"servers": 1}, {"sleep": 600}])}, mcp_servers=servers)
    error = caught.value
    assert error.message == "MCP server 'calc' failed: it ended with exit code 1: no database"
    assert (error.code, error.retryable) == ("mcp-server-failed", False)
    assert error.trajectory.output == "Hm."  # type: ignore[union-attr]  # it has one


async def test_an_mcp_server_that_fails_unnoticed_by_the_agent(execute: Any, agent: Any) -> None:
    servers = stdio("calc", "-c", "import sys; sys.exit(4)")
    with pytest.raises(ExecutorError, match="MCP server 'calc' failed: it ended with exit code 4"):
        await execute({"command": agent([{"servers": 1}, {"shell": "sleep 0.5"}, said("Ok.")])}, mcp_servers=servers)


@pytest.mark.parametrize(
    ("timeout_ms", "limit_ms", "step", "told"),
    [
        (300, None, {"sleep": 600}, "within 0.3s"),
        (None, 1000, {"sleep": 600}, "before the time was over"),
        (None, None, {"shell": "sleep 0.5"}, "before the agent was done"),
    ],
)
async def test_an_mcp_server_that_does_not_come_up(
    execute: Any, agent: Any, timeout_ms: int | None, limit_ms: int | None, step: Any, told: str
) -> None:
    servers = stdio("calc", "-c", "import time; print('wait', flush=True); time.sleep(600)", timeout_ms=timeout_ms)
    command = {"command": agent([{"servers": 1}, step, said("Ok.")])}
    with pytest.raises(ExecutorError) as caught:
        await execute(command, mcp_servers=servers, max_agent_duration_ms=limit_ms)
    assert caught.value.message == f"MCP server 'calc' failed: it did not come up {told}"
    assert (caught.value.code, caught.value.retryable) == ("mcp-server-failed", False)


@pytest.mark.parametrize("turn", [0, 1])
async def test_an_mcp_server_that_ends_later_is_worth_a_warning(
    execute: Any, agent: Any, tmp_path: Path, turn: int
) -> None:
    warnings: list[str] = []
    end = tmp_path / "end"
    wait = f"import os, time\n{UP}\nwhile not os.path.exists({str(end)!r}): time.sleep(0.02)\nexit('tired')"
    seen = f"find {tmp_path} -name mcp-0.exit | grep -q ."
    last = {"shell": f"touch {end}; for i in $(seq 200); do {seen} && break; sleep 0.05; done"}
    prompts: list[list[dict[str, Any]]] = [[{"servers": 1}, said("One.")], [said("Two.")]]
    prompts[turn].append(last)
    command = agent(*prompts)
    trajectory = await execute(
        {"command": command}, "one", "two", mcp_servers=stdio("calc", "-c", wait), warn=warnings.append
    )
    assert trajectory.output == "Two."
    assert warnings == ["MCP server 'calc' ended while the agent worked: it ended with exit code 1: tired"]


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_mcp_servers_elsewhere(execute: Any, agent: Any, heard: Any, kind: Any) -> None:
    able = {**INFO, "agentCapabilities": {"mcpCapabilities": {kind: True}}}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
        servers = {"there": McpServer(name="there", type=kind, url=url, headers={"X-Team": "a"})}
        with pytest.raises(ExecutorError, match=f"does not support MCP servers by {kind}") as caught:
            await execute({"command": agent()}, mcp_servers=servers)
        assert caught.value.code == "unsupported-option"
        await execute({"command": agent(initialize=able)}, mcp_servers=servers)
    headers = [{"name": "X-Team", "value": "a"}]
    told = {"type": kind, "name": "there", "url": url, "headers": headers}
    assert heard("session/new")[-1]["mcpServers"] == [told]


async def test_an_mcp_server_elsewhere_that_is_not_there(execute: Any, agent: Any) -> None:
    command = {"command": agent(initialize={**INFO, "agentCapabilities": {"mcpCapabilities": {"http": True}}})}
    with nobody() as url:
        servers = {"there": McpServer(name="there", type="http", url=f"{url}/x")}
        with pytest.raises(ExecutorError) as caught:
            await execute(command, mcp_servers=servers)
        place = url.removeprefix("http://")
        assert caught.value.message == f"MCP server 'there' failed: no connection to {place}: Connection refused"
        assert (caught.value.code, caught.value.retryable) == ("mcp-server-failed", False)
        # What an agent reaches by a proxy cannot be told from here.
        trajectory = await execute(command, mcp_servers=servers, env={**os.environ, "HTTP_PROXY": "http://127.0.0.1:9"})
        assert trajectory.end_reason == "completed"


async def test_tools_of_mcp_servers_cannot_be_chosen(execute: Any, agent: Any) -> None:
    with pytest.raises(ExecutorError, match="cannot be told 'tools' of MCP server 'calc'") as caught:
        await execute({"command": agent()}, mcp_servers=stdio("calc", tools=("add",)))
    assert caught.value.code == "unsupported-option"


async def test_attachments(execute: Any, agent: Any, heard: Any, tmp_path: Path) -> None:
    files = {"a.txt": b"text", "b.png": b"\x89PNG", "c.bin": b"\xff\xfe"}
    kinds = {"a.txt": "text/plain", "b.png": "image/png", "c.bin": "application/octet-stream"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    attached = tuple(Attachment(path=tmp_path / name, name=name, mime_type=kinds[name], turn=1) for name in files)
    with pytest.raises(ExecutorError, match=r"does not support attachments with this agent \('a.txt'\)") as caught:
        await execute({"command": agent()}, "one", "two", attachments=attached)
    assert caught.value.code == "unsupported-option"
    able = {**INFO, "agentCapabilities": {"promptCapabilities": {"image": True, "embeddedContext": True}}}
    trajectory = await execute({"command": agent(initialize=able)}, "one", "two", attachments=attached)
    first, second = (params["prompt"] for params in heard("session/prompt")[-2:])
    assert [block["type"] for block in first] == ["text"]
    assert [block["type"] for block in second] == ["text", "resource", "image", "resource"]
    assert second[1]["resource"]["text"] == "text"
    assert second[2]["data"] == "iVBORw=="
    assert second[3]["resource"]["blob"] == "//4="
    assert of(trajectory, "user_message")[1]["attachments"] == list(files)


async def test_one_agent_for_several_trials(execute: Any, agent: Any, heard: Any, tmp_path: Path) -> None:
    places = {"shared_runner": LocalProcessRunner("shared-agents", {}, cwd=tmp_path), "shared_dir": tmp_path}
    config = {"command": agent([{"text": "You said ${PROMPT}"}]), "sessionsPerAgent": 2}
    for prompt in ("one", "two"):
        assert (await execute(config, prompt, **places)).output == f"You said {prompt}"
    assert len(heard("initialize")) == 1
    assert len(heard("session/new")) == 2
    # Without a runner of the run, and with assets, which are told by the environment, each trial has its own.
    (tmp_path / "assets").mkdir()
    await execute(config, "three")
    await execute(config, "four", **places, assets_dir=tmp_path / "assets")
    assert len(heard("initialize")) == 3


async def test_a_shared_agent_that_died_is_replaced(execute: Any, agent: Any, heard: Any, tmp_path: Path) -> None:
    places = {"shared_runner": LocalProcessRunner("shared-agents-2", {}, cwd=tmp_path), "shared_dir": tmp_path}
    config = {"command": agent([{"exit": 3}]), "sessionsPerAgent": 2}
    for _ in range(2):
        with pytest.raises(ExecutorError, match="ended with exit code 3"):
            await execute(config, **places)
    assert len(heard("initialize")) == 2
