"""Tool overrides in front of a real MCP server, and simulated users."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import mcp_agent
import mcp_server
import pytest
import yaml

from vally import JudgeError
from vally.testing import CliResult, MockLlm, ProjectBuilder, ScriptedJudge, run_cli

SERVER = Path(mcp_server.__file__)


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    return ProjectBuilder(tmp_path / "project")


def servers(log: Path, *names: str) -> dict[str, Any]:
    one = {"command": sys.executable, "args": [str(SERVER), str(log)], "env": {"WORD": "hello"}, "cwd": "${workspace}"}
    return {name: {"type": "stdio", **one} for name in names}


def run(
    project: ProjectBuilder,
    prompt: str,
    overrides: list[dict[str, Any]],
    *words: str,
    names: tuple[str, ...] = ("calc",),
    user: dict[str, Any] | None = None,
    plugins: tuple[object, ...] = (),
    **keys: Any,
) -> CliResult:
    simulation = {**({"tool_overrides": overrides} if overrides else {}), **({"user": user} if user else {})}
    stimulus = {
        "name": "s",
        "prompt": prompt,
        "environment": {"mcpServers": servers(project.root / "calls.log", *names)} if names else {},
        "simulation": simulation,
        "graders": [{"type": "completed"}],
    }
    defaults = {"executor": "mcp-agent", **keys.pop("defaults", {})}
    project.eval("sim", [stimulus], defaults=defaults, **keys)
    result = run_cli(
        ["eval", "-e", "evals/sim/eval.yaml", *words], cwd=project.root, plugins=(mcp_agent.RECORD, *plugins)
    )
    assert "Traceback" not in result.stderr
    return result


def events(result: CliResult, kind: str) -> list[dict[str, Any]]:
    return [item["data"] for item in result.records[0]["trajectory"]["events"] if item["type"] == kind]


def answers(result: CliResult) -> list[tuple[object, bool, bool]]:
    """Of each result its text, whether it succeeded and whether it was simulated."""
    return [(item["result"], item["success"], item.get("simulated", False)) for item in events(result, "tool_result")]


def real_calls(project: ProjectBuilder) -> list[dict[str, Any]]:
    path = project.root / "calls.log"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_what_fits_is_answered_and_the_rest_goes_to_the_server(project: ProjectBuilder) -> None:
    prompt = "\n".join(
        [
            'call calc add {"a": 1, "b": 2}',
            'call calc add {"b": 40.0, "a": 2}',
            'call calc add {"a": 1, "b": true}',
            "call calc echo",
            "call calc environment",
        ]
    )
    overrides = [
        {"tool": "add", "arguments": {"a": 2, "b": 40}, "result": "canned"},
        {"tool": "add", "arguments": {"a": 1, "b": 1}, "result": "true is not 1"},
        {"tool": "echo", "error": "no echo today"},
    ]
    result = run(project, prompt, overrides)
    assert result.exit_code == 0, result.stderr
    workspace = answers(result)[4][0]
    assert answers(result)[:4] == [
        ("3", True, False),
        ("canned", True, True),
        ("2", True, False),
        ("no echo today", False, True),
    ]
    assert str(workspace).startswith("hello ")
    assert [item.get("simulated", False) for item in events(result, "tool_call")] == [False, True, False, True, False]
    assert result.records[0]["trajectory"]["metrics"]["simulatedToolCallCount"] == 2
    assert [call["name"] for call in real_calls(project)] == ["add", "add", "environment"]


def test_an_override_of_one_server_leaves_the_others_alone(project: ProjectBuilder) -> None:
    prompt = "call one echo\ncall two echo"
    result = run(project, prompt, [{"tool": "echo", "server": "two", "result": {"a": [1]}}], names=("one", "two"))
    assert answers(result) == [("{}", True, False), ('{"a": [1]}', True, True)]


def test_the_first_that_fits_answers_again_and_again(project: ProjectBuilder) -> None:
    overrides = [
        {"tool": "echo", "server": "calc", "result": "first"},
        {"tool": "echo", "result": "second"},
    ]
    result = run(project, "call calc echo\ncall calc echo {}", overrides)
    assert answers(result) == [("first", True, True)] * 2
    assert real_calls(project) == []


def test_a_whole_tool_result_is_taken_as_it_is(project: ProjectBuilder) -> None:
    whole = {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "isError": True}
    assert answers(run(project, "call calc echo", [{"tool": "echo", "result": whole}])) == [("ab", False, True)]


def test_a_server_that_ends_is_told_as_without_a_proxy(project: ProjectBuilder) -> None:
    result = run(project, "call calc echo\ncall calc exit", [{"tool": "echo", "result": "x"}])
    assert result.exit_code == 1
    assert answers(result) == [("x", True, True)]
    assert result.records[0]["errorInfo"]["code"] == "mcp-server-failed"


def test_an_override_of_no_server_is_a_warning(project: ProjectBuilder) -> None:
    result = run(project, "hello", [{"tool": "echo", "server": "calk", "result": "x"}])
    assert result.exit_code == 0
    assert "tool overrides name MCP server 'calk'" in json.dumps(result.records[0]["warnings"])


def test_a_server_behind_an_address_that_nobody_answers_at(project: ProjectBuilder) -> None:
    stimulus = {
        "name": "s",
        "prompt": "call far t",
        "environment": {"mcpServers": {"far": {"type": "http", "url": "http://127.0.0.1:9/mcp"}}},
        "simulation": {"tool_overrides": [{"tool": "t", "result": "canned"}]},
        "graders": [{"type": "completed"}],
    }
    project.eval("sim", [stimulus], defaults={"executor": "mcp-agent"})
    result = run_cli(["eval", "-e", "evals/sim/eval.yaml"], cwd=project.root, plugins=(mcp_agent.RECORD,))
    assert result.exit_code == 1
    assert result.records[0]["errorInfo"]["code"] == "mcp-server-failed"
    assert "the server cannot be reached" in result.records[0]["error"]


def test_an_executor_without_simulation_is_refused(project: ProjectBuilder) -> None:
    defaults = {"executor": {"name": "command", "config": {"command": ["true"]}}}
    result = run(project, "x", [{"tool": "t", "result": 1}], defaults=defaults, names=())
    assert result.exit_code == 1
    assert "does not support tool overrides (stimulus 's')" in result.stderr


def test_recorded_calls_are_simulated_in_the_next_run(project: ProjectBuilder) -> None:
    prompt = 'call calc add {"a": 1, "b": 2}\ncall calc echo {"x": [1, null, "two\\nlines"]}'
    first = run(project, prompt, [{"tool": "never", "result": "x"}])
    assert len(real_calls(project)) == 2
    recorded = run_cli(["simulate", "record", "latest"], cwd=project.root)
    assert recorded.exit_code == 0, recorded.stderr
    overrides = yaml.safe_load(recorded.stdout)["simulation"]["tool_overrides"]
    second = run(project, prompt, overrides)
    assert len(real_calls(project)) == 2
    assert [text for text, _, _ in answers(second)] == [text for text, _, _ in answers(first)]
    assert all(simulated for _, _, simulated in answers(second))


USER = {"goal": "Get the sum.", "persona": "In a hurry.", "max_iterations": 3}


BY_SCRIPT = {"judge_provider": {"type": "scripted-user"}}


def scripted(judge: ScriptedJudge) -> object:
    return judge.record("scripted-user", provider_types=("scripted-user",))


def says(status: str, message: str | None = None) -> dict[str, Any]:
    return {"status": status, **({"message": message} if message is not None else {})}


@pytest.mark.parametrize("status", ["goal_met", "given_up"])
def test_a_simulated_user_goes_on_until_it_is_done(status: str, project: ProjectBuilder) -> None:
    judge = ScriptedJudge([says("continue", "And now?"), says(status)])
    result = run(project, "Start.", [], user=USER, names=(), plugins=(scripted(judge),), defaults=BY_SCRIPT)
    assert result.exit_code == 0, result.stderr
    assert [item["content"] for item in events(result, "user_message")] == ["Start.", "And now?"]
    assert result.records[0]["trajectory"]["endReason"] == "completed"
    asked = judge.requests[-1]
    assert "# Goal\n\nGet the sum." in asked.user_message
    assert "In a hurry." in asked.user_message
    assert asked.user_message.endswith("User: Start.\n\nAgent: done: Start.\n\nUser: And now?\n\nAgent: done: And now?")


def test_a_conversation_ends_at_its_cap(project: ProjectBuilder) -> None:
    judge = ScriptedJudge(lambda _: says("continue", "More!"))
    result = run(project, "Start.", [], user=USER, names=(), plugins=(scripted(judge),), defaults=BY_SCRIPT)
    trajectory = result.records[0]["trajectory"]
    assert [item["content"] for item in events(result, "user_message")] == ["Start.", "More!", "More!", "More!"]
    assert (trajectory["endReason"], trajectory["metadata"]["iterationCapReached"]) == ("iteration_cap", True)
    assert len(judge.requests) == 3


def test_a_judge_that_fails_ends_the_trial_as_an_error(project: ProjectBuilder) -> None:
    judge = ScriptedJudge([JudgeError("nobody there", kind="transport")])
    result = run(project, "Start.", [], user=USER, names=(), plugins=(scripted(judge),), defaults=BY_SCRIPT)
    assert result.exit_code == 1
    info = result.records[0]["errorInfo"]
    assert (info["code"], info["retryable"]) == ("simulated-user-failed", True)
    assert result.records[0]["error"] == "simulated user: nobody there"
    assert [item["content"] for item in events(result, "user_message")] == ["Start."]


@pytest.mark.parametrize(("status", "retryable"), [(401, False), (500, True)])
def test_a_model_that_refuses_the_user_is_asked_again_where_that_may_help(
    status: int, retryable: bool, project: ProjectBuilder
) -> None:
    with MockLlm() as server:
        defaults = {"judge_provider": {"type": "openai", "baseUrl": server.url}, "executor": "mock"}
        user = {"goal": f"Get it.\n!fail {status} retry-after=0", "model": "m"}
        result = run(project, "Start.", [], "--skip-grade", user=user, names=(), defaults=defaults)
    info = result.records[0]["errorInfo"]
    assert (info["code"], info["retryable"]) == ("simulated-user-failed", retryable)


def test_the_time_ends_while_the_user_is_asked(project: ProjectBuilder) -> None:
    with MockLlm() as server:
        provider = {"judge_provider": {"type": "openai", "baseUrl": server.url}}
        defaults = {**provider, "executor": "mock", "timeout": "1s"}
        user = {"goal": "Get it.\n!sleep 60", "model": "m"}
        result = run(project, "Start.", [], "--skip-grade", user=user, names=(), defaults=defaults)
    record = result.records[0]
    assert record["trajectory"]["endReason"] == "agent_timeout"
    (warning,) = record["warnings"]
    assert warning.startswith("the time was over while the model of the simulated user was asked for ")


def test_a_simulated_user_by_a_model_server(project: ProjectBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    goal = 'Get it.\n!tool submit_message {"status": "continue", "message": "Please go on."}'
    with MockLlm() as server:
        defaults = {"judge_provider": {"type": "openai", "baseUrl": server.url}, "executor": "mock"}
        user = {"goal": goal, "max_iterations": 2, "model": "m"}
        result = run(project, "Start.", [], "--skip-grade", user=user, names=(), defaults=defaults)
    assert result.exit_code == 0, result.stderr
    assert [item["content"] for item in events(result, "user_message")] == ["Start.", "Please go on.", "Please go on."]
    assert result.records[0]["trajectory"]["endReason"] == "iteration_cap"
    assert result.records[0]["judgeUsage"]["callCount"] == 2


def test_without_a_judge_the_run_does_not_start(project: ProjectBuilder) -> None:
    at = {"type": "openai", "baseUrl": "http://127.0.0.1:9/v1", "apiKeyEnv": "NO_SUCH_KEY"}
    for words in ([], ["--skip-grade"]):
        result = run(project, "Start.", [], *words, user=USER, names=(), defaults={"judge_provider": at})
        assert (result.exit_code, result.run_dir) == (1, None)
        assert "NO_SUCH_KEY" in result.stderr


def test_preflight_asks_the_model_that_plays_the_user(project: ProjectBuilder) -> None:
    at = {"type": "openai", "baseUrl": "http://127.0.0.1:9/v1"}
    result = run(project, "x", [], "--preflight", "--skip-grade", user=USER, names=(), defaults={"judge_provider": at})
    assert (result.exit_code, result.run_dir) == (1, None)
    assert "1 of 1 cannot start" in result.stderr
    assert "judge 'openai'" in result.stderr
