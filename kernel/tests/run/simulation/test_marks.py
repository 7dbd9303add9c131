"""Which calls of a trajectory are marked as simulated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vally import McpServer, mark_simulated, wrap_servers
from vally.testing import event, stimulus, trajectory


def called(number: int, name: str, arguments: Any, *, server: str | None = None, agent: str | None = None) -> list[Any]:
    call_id = str(number)
    made = [
        event("tool_call", tool_name=name, tool_call_id=call_id, arguments=arguments, mcp_server=server),
        event("tool_result", tool_name=name, tool_call_id=call_id, success=True, result="x"),
    ]
    return [item.model_copy(update={"agent_id": agent}) for item in made]


def marked(tmp_path: Path, answered: list[dict[str, Any]], *events: Any) -> list[bool]:
    directory = tmp_path / "simulation"
    directory.mkdir()
    (directory / "answered.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in answered) + '{"torn')
    found = mark_simulated(trajectory(*events), tmp_path)
    return [item.data.get("simulated", False) for item in found.events]


def answer(tool: str, arguments: Any, server: str = "db") -> dict[str, Any]:
    return {"server": server, "tool": tool, "arguments": arguments}


def test_a_call_and_its_result_once_per_answer(tmp_path: Path) -> None:
    events = [*called(1, "q", {"n": 1}), *called(2, "q", {"n": 1.0}), *called(3, "q", {"n": 1})]
    answered = [answer("q", {"n": 1}), answer("q", {"n": 1})]
    assert marked(tmp_path, answered, *events) == [True, True, True, True, False, False]


def test_names_with_the_server_before_them(tmp_path: Path) -> None:
    names = ["db-q", "mcp__db__q", "db_q", "other-q", "dbq"]
    events = [item for number, name in enumerate(names) for item in called(number, name, {})]
    found = marked(tmp_path, [answer("q", {})] * 5, *events)
    assert found[::2] == [True, True, True, False, False]


def test_a_recorded_server_must_be_the_one(tmp_path: Path) -> None:
    events = [*called(1, "q", None, server="other"), *called(2, "q", None, server="db")]
    assert marked(tmp_path, [answer("q", {})], *events) == [False, False, True, True]


def test_ids_of_agents_are_their_own(tmp_path: Path) -> None:
    events = [*called(1, "q", {"a": 1}, agent="x"), *called(1, "q", {"a": 2})]
    assert marked(tmp_path, [answer("q", {"a": 2})], *events) == [False, False, True, True]


def test_without_answers_nothing_changes(tmp_path: Path) -> None:
    found = trajectory(*called(1, "q", {}))
    assert mark_simulated(found, tmp_path) is found


def test_only_affected_servers_get_a_proxy(tmp_path: Path) -> None:
    servers = {name: McpServer(name=name, type="stdio", command="x", args=("a",), cwd="/w") for name in ("one", "two")}
    given = stimulus(simulation={"tool_overrides": [{"tool": "t", "server": "two", "arguments": {}, "result": 1}]})
    warnings: list[str] = []
    wrapped = wrap_servers(servers, given, tmp_path, warnings.append)
    assert wrapped["one"] == servers["one"]
    assert wrapped["two"].command != "x"
    config = json.loads(Path(wrapped["two"].args[-1]).read_text())
    assert (config["command"], config["cwd"], config["server"]) == (["x", "a"], "/w", "two")
    assert config["overrides"] == [{"tool": "t", "arguments": {}, "result": 1}]
    assert warnings == []
    assert wrap_servers(servers, stimulus(), tmp_path, warnings.append) == servers
    wrap_servers({}, given, tmp_path, warnings.append)
    assert warnings == ["tool overrides name MCP server 'two', which the environment does not have"]
