"""What the real runtime does in a trial."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from vally import Attachment, ExecutorError, McpServer, Skill, TurnComplete
from vally.testing import MockLlm
from vally_executor_copilot_sdk.executor import CopilotExecutor

pytestmark = [pytest.mark.heavy, pytest.mark.anyio]

DIALECTS = ["completions", "responses", "anthropic"]
SCRIPT = """Please do it.
!tool create {"path": "%s/hello.txt", "file_text": "hello\\n"}
!tool bash {"command": "cat hello.txt; exit 3", "description": "look"}
!usage 100 5 40
!say finished
"""
SERVER = """
import json, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    method = asked.get("method")
    if method == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "calc", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
        result = {"tools": [{"name": "add", "description": "adds", "inputSchema": schema}]}
    elif method == "tools/call":
        sums = asked["params"]["arguments"]
        result = {"content": [{"type": "text", "text": str(sums["a"] + sums["b"])}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
    if method == "tools/call" and sys.argv[1:] == ["once"]:
        sys.exit(3)
"""


def kinds(trajectory: Any) -> list[str]:
    return [event.type for event in trajectory.events]


def data(trajectory: Any, kind: str) -> list[dict[str, Any]]:
    return [event.data for event in trajectory.events if event.type == kind]


def skill(work: Path, name: str, frontmatter: str | None = None) -> Skill:
    """A skill in the workspace, as a backend offers it."""
    path = work / ".skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    text = f"name: {name}\ndescription: Use it to {name}\n" if frontmatter is None else frontmatter
    path.write_text(f"---\n{text}---\nBODY-OF-{name}\n")
    return Skill(name=name, description="", path=path, raw_content=path.read_text(), frontmatter={})


def server(name: str, *words: str, **fields: Any) -> McpServer:
    return McpServer(name=name, type="stdio", command=words[0], args=words[1:], **fields)


@pytest.fixture
def calculator(tmp_path: Path) -> Path:
    path = tmp_path / "calculator.py"
    path.write_text(SERVER)
    return path


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_tools_in_every_dialect(run: Any, provider: Any, llm: MockLlm, dialect: str, streaming: bool) -> None:
    config = {"provider": provider(dialect), "streaming": streaming}
    trajectory = await run(SCRIPT % run.work, config=config)
    assert (run.work / "hello.txt").read_text() == "hello\n"
    assert trajectory.output == "finished"
    assert trajectory.end_reason == "completed"
    calls = [(event.type, event.data["toolName"]) for event in trajectory.events if event.type.startswith("tool_")]
    assert calls == [(kind, name) for name in ("create", "bash") for kind in ("tool_call", "tool_result")]
    written, looked = data(trajectory, "tool_result")
    assert (written["success"], written.get("exitCode")) == (True, None)
    assert (looked["success"], looked["exitCode"]) == (True, 3)
    assert looked["result"].startswith("hello\n")
    usage = data(trajectory, "token_usage")
    assert len(usage) == 3
    assert (usage[-1]["inputTokens"], usage[-1]["outputTokens"], usage[-1]["cacheReadTokens"]) == (100, 5, 40)
    assert kinds(trajectory).count("turn_start") == kinds(trajectory).count("turn_end") == 3
    assert len({request.path for request in llm.requests}) == 1
    asked_to_stream = {bool(request.body.get("stream")) for request in llm.requests}
    assert asked_to_stream == {streaming or dialect == "anthropic"}
    assert trajectory.metadata["model"] == "mock-model"
    assert trajectory.metadata["executorVersion"].startswith("1.")


async def test_the_reasoning_effort_reaches_the_model(run: Any, llm: MockLlm) -> None:
    trajectory = await run("x\n!say y", reasoning_effort="high")
    assert llm.requests[-1].body["reasoning_effort"] == "high"
    assert trajectory.metadata["reasoningEffort"] == "high"


async def test_thoughts_are_told_once(run: Any) -> None:
    trajectory = await run('x\n!reason hmm\n!tool bash {"command": "true", "description": "d"}\n!reason aha\n!say y')
    assert [item["content"] for item in data(trajectory, "reasoning")] == ["hmm", "aha"]


async def test_a_skill_is_offered_and_activated(run: Any, llm: MockLlm) -> None:
    offered = skill(run.work, "greet")
    skill(run.work, "zebra")
    trajectory = await run('x\n!tool skill {"skill": "greet"}\n!say y', skills=(offered,))
    assert trajectory.metadata["skillsLoaded"] == ["greet"]
    assert "otherSkills" not in trajectory.metadata
    (activation,) = data(trajectory, "skill_activation")
    assert (activation["name"], activation["path"], activation["trigger"]) == (
        "greet",
        str(offered.path),
        "agent-invoked",
    )
    assert "Use it to greet" in json.dumps(llm.requests[0].body)
    assert "BODY-OF-greet" in json.dumps(llm.requests[-1].body)
    assert "zebra" not in json.dumps(llm.requests[0].body)


async def test_without_skills_none_is_offered(run: Any, llm: MockLlm) -> None:
    place = run.work / ".github" / "skills" / "hidden" / "SKILL.md"
    place.parent.mkdir(parents=True)
    place.write_text("---\nname: hidden\ndescription: HIDDEN-SKILL\n---\n")
    trajectory = await run("x\n!say y")
    assert trajectory.metadata["skillsLoaded"] == []
    assert "HIDDEN-SKILL" not in json.dumps(llm.requests[0].body)
    discovered = await run("x\n!say y", config={"configDiscovery": True})
    assert discovered.metadata["otherSkills"] == ["hidden"]
    builtin = await run("x\n!say y", config={"builtinSkills": True})
    assert builtin.metadata["otherSkills"]


async def test_a_broken_skill_is_an_error(run: Any, llm: MockLlm) -> None:
    with pytest.raises(ExecutorError, match="skill 'bad' was not loaded") as caught:
        await run("x", skills=(skill(run.work, "good"), skill(run.work, "bad", "name: [bad\n")))
    assert (caught.value.code, caught.value.retryable) == ("skill-not-loaded", False)
    assert not llm.requests


async def test_a_tool_of_an_mcp_server(run: Any, calculator: Path) -> None:
    servers = {"calc": server("calc", sys.executable, "-IS", str(calculator), cwd=str(run.work))}
    trajectory = await run('x\n!tool calc-add {"a": 2, "b": 40}\n!say y', mcp_servers=servers)
    (call,) = data(trajectory, "tool_call")
    assert (call["toolName"], call["mcpServer"]) == ("calc-add", "calc")
    (result,) = data(trajectory, "tool_result")
    assert (result["success"], result["result"]) == (True, "42")
    assert trajectory.metadata["mcpServers"] == ["calc"]


class RemoteCalculator(BaseHTTPRequestHandler):
    """An MCP server behind HTTP that wants a key."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["x-key"] != "secret-key-1":
            self._answer(401, {})
        elif "id" not in asked:
            self._answer(202, None)
        else:
            self._answer(200, {"jsonrpc": "2.0", "id": asked["id"], "result": self._result(asked)})

    def do_GET(self) -> None:
        self._answer(405, None)

    do_DELETE = do_GET

    def _result(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["method"] == "initialize":
            version = asked["params"]["protocolVersion"]
            facts = {"name": "remote", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": facts}
        if asked["method"] == "tools/list":
            return {"tools": [{"name": "one", "description": "says one", "inputSchema": {"type": "object"}}]}
        return {"content": [{"type": "text", "text": "1"}]}

    def _answer(self, status: int, body: Any) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        return None


@pytest.fixture
def remote() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), RemoteCalculator)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_a_tool_of_a_remote_mcp_server(run: Any, remote: str) -> None:
    def servers(key: str) -> dict[str, McpServer]:
        return {"far": McpServer(name="far", type="http", url=remote, headers={"X-Key": key}, timeout_ms=20_000)}

    trajectory = await run("x\n!tool far-one {}\n!say y", mcp_servers=servers("secret-key-1"))
    (result,) = data(trajectory, "tool_result")
    assert (result["success"], result["result"]) == (True, "1")
    assert "secret-key-1" not in trajectory.model_dump_json()
    with pytest.raises(ExecutorError, match="MCP server 'far' failed") as caught:
        await run("x", mcp_servers=servers("wrong-key"))
    assert caught.value.code == "mcp-server-failed"
    assert "wrong-key" not in caught.value.message


async def test_an_mcp_server_that_fails_is_an_error(run: Any, calculator: Path, llm: MockLlm) -> None:
    servers = {
        "calc": server("calc", sys.executable, "-IS", str(calculator)),
        "bad": server("bad", sys.executable, "-c", "import sys; sys.exit('out of luck')"),
    }
    with pytest.raises(ExecutorError, match=r"MCP server 'bad' failed: .*exit code 1.*out of luck") as caught:
        await run("x", mcp_servers=servers)
    assert (caught.value.code, caught.value.retryable) == ("mcp-server-failed", False)
    assert caught.value.trajectory is not None
    assert not llm.requests


async def test_an_mcp_server_that_does_not_exist_is_an_error(run: Any) -> None:
    with pytest.raises(ExecutorError, match=r"MCP server 'gone' failed: .*No such file") as caught:
        await run("x", mcp_servers={"gone": server("gone", "/nonexistent/program")})
    assert caught.value.code == "mcp-server-failed"


async def test_an_mcp_server_that_hangs_is_an_error(run: Any) -> None:
    words = (sys.executable, "-c", "import time; time.sleep(600)")
    with pytest.raises(ExecutorError, match=r"MCP server 'slow' failed: it did not come up within 0\.5s") as caught:
        await run("x", mcp_servers={"slow": server("slow", *words, timeout_ms=500)})
    assert caught.value.code == "mcp-server-failed"


async def test_an_mcp_server_that_ends_later_is_a_warning(run: Any, calculator: Path) -> None:
    warnings: list[str] = []
    servers = {"calc": server("calc", sys.executable, "-IS", str(calculator), "once")}
    script = 'x\n!tool calc-add {"a": 2, "b": 40}\n!tool bash {"command": "sleep 1", "description": "d"}\n!say y'
    trajectory = await run(script, mcp_servers=servers, warn=warnings.append)
    assert trajectory.end_reason == "completed"
    assert data(trajectory, "tool_result")[0]["result"] == "42"
    (warning,) = warnings
    assert warning.startswith("MCP server 'calc' ended while the agent worked")


async def test_turns_follow_each_other_in_one_session(run: Any, llm: MockLlm) -> None:
    done: list[TurnComplete] = []

    async def turn_completed(turn: TurnComplete) -> None:
        done.append(turn)
        asked.append(len(llm.requests))

    asked: list[int] = []
    script = 'one\n!tool bash {"command": "echo 1 > one", "description": "d"}\n!say first'
    trajectory = await run(script, "two\n!say second", "three\n!say third", on_turn_complete=turn_completed)
    assert done == [TurnComplete(0, False), TurnComplete(1, False), TurnComplete(2, True)]
    assert asked == [2, 3, 4]
    assert [event.turn for event in trajectory.events if event.type == "assistant_message"] == [0, 1, 2]
    assert all(event.turn is not None for event in trajectory.events)
    assert [item["content"] for item in data(trajectory, "user_message")] == [
        script,
        "two\n!say second",
        "three\n!say third",
    ]
    assert "first" in json.dumps(llm.requests[-1].body)
    assert trajectory.output == "third"


async def test_a_sub_agent(run: Any) -> None:
    agents = run.work / ".github" / "agents"
    agents.mkdir(parents=True)
    (agents / "helper.agent.md").write_text("---\nname: helper\ndescription: helps\n---\nYou help.\n")
    inner = 'inner\n!tool bash {"command": "echo sub > sub.txt", "description": "d"}\n!say inner done'
    task = {"agent_type": "helper", "name": "h", "mode": "sync", "description": "d", "prompt": inner}
    trajectory = await run(f"x\n!tool task {json.dumps(task)}\n!say outer done")
    assert (run.work / "sub.txt").read_text() == "sub\n"
    assert trajectory.output == "outer done"
    calls = [event for event in trajectory.events if event.type == "tool_call"]
    (shell,) = [event for event in calls if event.data["toolName"] == "bash"]
    assert shell.agent_id
    assert shell.agent_name == "helper"
    assert [event.data["toolName"] for event in calls if not event.agent_id] == ["task"]
    assert [event.type for event in trajectory.events if event.type == "user_message"] == ["user_message"]


async def test_an_agent_to_start_with(run: Any, llm: MockLlm) -> None:
    agents = run.work / ".github" / "agents"
    agents.mkdir(parents=True)
    (agents / "pirate.agent.md").write_text("---\nname: pirate\ndescription: d\n---\nSPEAK-LIKE-A-PIRATE\n")
    await run("x\n!say y", config={"agent": "pirate"})
    assert "SPEAK-LIKE-A-PIRATE" in json.dumps(llm.requests[-1].body)
    with pytest.raises(ExecutorError, match="Custom agent 'parrot' not found") as caught:
        await run("x", config={"agent": "parrot"})
    assert caught.value.code == "executor-config"


async def test_instructions_tools_and_the_system_message(run: Any, llm: MockLlm) -> None:
    (run.work / "AGENTS.md").write_text("READ-MY-INSTRUCTIONS\n")
    await run("x\n!say y", config={"systemMessage": {"mode": "append", "content": "ONE-MORE-THING"}})
    first = json.dumps(llm.requests[-1].body)
    assert "READ-MY-INSTRUCTIONS" in first
    assert "ONE-MORE-THING" in first
    assert '"ask_user"' not in first
    await run("x\n!say y", config={"customInstructions": "none", "availableTools": ["bash", "view"]})
    second = llm.requests[-1].body
    assert "READ-MY-INSTRUCTIONS" not in json.dumps(second)
    assert sorted(tool["function"]["name"] for tool in second["tools"]) == ["bash", "view"]
    await run("x\n!say y", config={"excludedTools": ["bash"]})
    third = [tool["function"]["name"] for tool in llm.requests[-1].body["tools"]]
    assert "bash" not in third
    assert "view" in third


async def test_answers_to_questions(run: Any) -> None:
    script = 'x\n!tool ask_user {"question": "Colour?"}\n!tool ask_user {"question": "Size?"}\n!say y'
    trajectory = await run(script, config={"askUser": ["blue", "large"]})
    assert [item["result"] for item in data(trajectory, "tool_result")] == [
        "User responded: blue",
        "User responded: large",
    ]


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [
        ("allow-all", [True, True, True]),
        ("deny-all", [False, False, False]),
        ("workspace", [True, False, True]),
        ({"default": "allow", "rules": [{"kind": "shell", "match": "^cat", "decision": "deny", "feedback": "no cats"}]},
         [True, True, False]),
        ({"default": "deny", "rules": [{"kind": "write", "match": r"inside\.txt$", "decision": "allow"}]},
         [True, False, False]),
    ],
    ids=["allow-all", "deny-all", "workspace", "deny-rule", "allow-rule"],
)  # fmt: skip
async def test_permissions(run: Any, policy: Any, allowed: list[bool]) -> None:
    outside = run.directory / "outside.txt"
    script = (
        f'x\n!tool create {{"path": "{run.work}/inside.txt", "file_text": "1"}}\n'
        f'!tool create {{"path": "{outside}", "file_text": "1"}}\n'
        '!tool bash {"command": "cat inside.txt > copy.txt", "description": "d"}\n!say y'
    )
    trajectory = await run(script, config={"permissions": policy})
    results = data(trajectory, "tool_result")
    assert [item["success"] for item in results] == allowed
    assert [(run.work / "inside.txt").exists(), outside.exists()] == allowed[:2]
    assert all(item["errorCode"] == "denied" for item in results if not item["success"])
    if isinstance(policy, dict) and policy["default"] == "allow":
        assert "no cats" in results[2]["result"]


async def test_attachments_hide_where_they_come_from(run: Any, llm: MockLlm, tmp_path: Path) -> None:
    path = tmp_path / "secret-place" / "note.txt"
    path.parent.mkdir()
    path.write_text("ATTACHED")
    attachment = Attachment(path=path, name="note.txt", mime_type="text/plain", turn=1)
    trajectory = await run("one\n!say a", "two\n!say b", attachments=(attachment,))
    prompts = data(trajectory, "user_message")
    assert [item.get("attachments") for item in prompts] == [None, ["note.txt"]]
    last = json.dumps(llm.requests[-1].body)
    assert "note.txt" in last
    assert "secret-place" not in last
    assert "note.txt" not in json.dumps(llm.requests[0].body)


async def test_large_output_stays_in_the_trial(run: Any) -> None:
    script = 'x\n!tool bash {"command": "seq 1 20000", "description": "d"}\n!say y'
    cut = await run(script, config={"largeOutputBytes": 1000})
    assert len(data(cut, "tool_result")[0]["result"]) < 5000
    assert str(run.directory / "trial" / "large-output") in data(cut, "tool_result")[0]["result"]
    whole = await run(script, config={"largeOutputBytes": 1_000_000})
    assert "\n20000\n" in data(whole, "tool_result")[0]["result"]


async def test_logs_of_a_session(run: Any, tmp_path: Path) -> None:
    log = tmp_path / "kept" / "events.jsonl"
    raw: list[Any] = []
    logger = logging.Logger("trial", logging.DEBUG)
    trajectory = await run(
        "x\n!say the mock-key-4711 is secret",
        session_log=log,
        on_raw_event=raw.append,
        log=logger,
        redact=lambda text: text.replace("mock-key-4711", "<gone>"),
    )
    assert trajectory.session_path == str(log)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines[0]["type"] == "session.start"
    assert "<gone>" in log.read_text()
    live = (run.directory / "trial" / "live-events.jsonl").read_text()
    assert "assistant.usage" in live
    for text in (log.read_text(), live):
        assert "mock-key-4711" not in text
    assert {"session.start", "user.message", "assistant.usage"} <= {event["type"] for event in raw}


async def test_settings_of_the_home(run: Any) -> None:
    """A hook of the user shows whether the runtime reads them."""

    def hook(name: str) -> dict[str, Any]:
        command = {"type": "command", "bash": f"touch {run.directory / name}"}
        return {"version": 1, "hooks": {"sessionStart": [command], "userPromptSubmitted": [command]}}

    variable = {"COPILOT_HOME_SETTINGS_JSON": json.dumps(hook("by-variable"))}
    await run("x\n!say y", process_env=variable)
    assert (run.directory / "by-variable").exists()
    (run.directory / "by-variable").unlink()
    await run("x\n!say y", process_env=variable, config={"settings": hook("by-config")})
    assert (run.directory / "by-config").exists()
    assert not (run.directory / "by-variable").exists()
    with pytest.raises(ExecutorError, match="COPILOT_HOME_SETTINGS_JSON must be a JSON object"):
        await run("x", process_env={"COPILOT_HOME_SETTINGS_JSON": "[]"})


async def test_a_provider_without_a_key(run: Any, provider: Any) -> None:
    trajectory = await run("x\n!say y", config={"provider": provider(apiKeyEnv=None)})
    assert trajectory.output == "y"


async def test_the_model_on_the_wire(run: Any, provider: Any, llm: MockLlm) -> None:
    trajectory = await run("x\n!say y", config={"provider": provider(model="on-the-wire")}, model="selected")
    assert llm.requests[-1].body["model"] == "on-the-wire"
    assert trajectory.metadata["model"] == "selected"
    with pytest.raises(ExecutorError, match="a model is required with 'provider'"):
        await run("x", config={"provider": provider(model=None)})


async def test_headers_reach_the_endpoint(run: Any, provider: Any, llm: MockLlm) -> None:
    await run("x\n!say y", config={"provider": provider(headers={"X-Team": "seven"})})
    assert llm.requests[-1].headers["x-team"] == "seven"


async def test_model_calls_can_be_answered_in_this_process(run: Any, provider: Any, llm: MockLlm) -> None:
    import httpx
    from copilot import CopilotRequestHandler

    seen: list[Any] = []

    class Handler(CopilotRequestHandler):
        async def send_request(self, request: httpx.Request, ctx: Any) -> httpx.Response:
            seen.append((ctx.session_id, str(request.url), json.loads(await request.aread())["model"]))
            message = {"role": "assistant", "content": "from this process"}
            usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            facts = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}
            return httpx.Response(200, json={**facts, "usage": usage, "choices": [choice]})

    class Answering(CopilotExecutor):
        def request_handler(self, config: Any, options: Any) -> CopilotRequestHandler:
            return Handler()

    run.executor = Answering()
    trajectory = await run("x", config={"provider": provider(baseUrl="http://model.invalid/v1")})
    assert trajectory.output == "from this process"
    assert trajectory.metrics.token_usage.total_tokens == 5
    assert seen == [(trajectory.id, "http://model.invalid/v1/chat/completions", "mock-model")]
    assert not llm.requests


async def test_a_simulated_user_goes_on(run: Any) -> None:
    class User:
        def __init__(self) -> None:
            self.texts = ["more\n!say second", "enough\n!say third"]
            self.seen: list[int] = []

        async def next_message(self, events: Any) -> str | None:
            self.seen.append(len(events))
            return self.texts.pop(0) if self.texts else None

    done: list[TurnComplete] = []

    async def turn_completed(turn: TurnComplete) -> None:
        done.append(turn)

    user = User()
    trajectory = await run("first\n!say first", simulated_user=user, on_turn_complete=turn_completed)
    assert trajectory.output == "third"
    assert [item.final for item in done] == [False, False, True]
    assert user.seen == sorted(set(user.seen))
    assert [event.turn for event in trajectory.events if event.type == "user_message"] == [0, 1, 2]


async def test_streamed_fragments_are_not_kept(run: Any) -> None:
    raw: list[Any] = []
    seen: list[Any] = []
    trajectory = await run(
        "x\n!chunk-delay 0.01\n!say one two three four", config={"streaming": True}, on_raw_event=raw.append,
        on_event=seen.append,
    )  # fmt: skip
    assert any(event["type"].endswith("_delta") for event in raw)
    assert trajectory.output == "one two three four"
    assert [event.type for event in trajectory.events] == [
        "user_message", "turn_start", "token_usage", "assistant_message", "turn_end",
    ]  # fmt: skip
    assert [event.type for event in seen] == [event.type for event in trajectory.events]


ODD = {
    "surrogate": "\ud800 lone",
    "nul": "nul \x00 byte",
    "escape": "\x1b[31mred",
    "direction": "\u202e right to left",
    "separator": "\u2028 line",
    "empty": "",
    "long": "x" * 400_000,
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
async def test_odd_prompts(run: Any, text: str) -> None:
    """Whatever the prompt is, it is answered, and stands in the trajectory as it was."""
    prompt = f"{text}\n!say fine"
    trajectory = await run(prompt)
    assert trajectory.output == "fine"
    assert data(trajectory, "user_message") == [{"content": prompt}]


async def test_a_prompt_that_the_model_cannot_hold(run: Any) -> None:
    trajectory = await run("x" * 2_000_000)
    assert trajectory.end_reason == "budget"
    assert any("prompt budget" in item["message"] for item in data(trajectory, "error"))
    again = await run("x\n!say again")
    assert again.output == "again"


async def test_an_odd_workspace(run: Any, make_runs: Any, llm: MockLlm, tmp_path: Path) -> None:
    directory = tmp_path / "it's a \u00fcml\u00e4ut $HOME 'dir'"
    odd = make_runs(directory.resolve(), llm)
    odd.work.mkdir(parents=True)
    offered = skill(odd.work, "greet")
    try:
        script = (
            'x\n!tool skill {"skill": "greet"}\n!tool bash {"command": "pwd; echo 1 > one", "description": "d"}\n!say y'
        )
        trajectory = await odd(script, skills=(offered,))
    finally:
        await odd.executor.shutdown()
    assert trajectory.metadata["skillsLoaded"] == ["greet"]
    assert (odd.work / "one").exists()
