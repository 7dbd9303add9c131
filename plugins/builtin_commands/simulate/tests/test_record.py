"""Tool overrides made from recorded calls."""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from vally import PluginHost, dump_record, load_eval_spec, record_line
from vally.testing import CliResult, event, run_cli, trajectory, trial_result
from vally_command_simulate.block import yaml_block
from vally_command_simulate.overrides import plain_name

Simulate = Callable[..., CliResult]


def called(
    number: int | str, name: str, arguments: Any, result: Any, *, server: str | None = "db", **fields: Any
) -> list[Any]:
    call_id = str(number)
    call = event("tool_call", tool_name=name, tool_call_id=call_id, arguments=arguments, mcp_server=server)
    if result is None:
        return [call]
    return [
        call,
        event("tool_result", tool_name=name, tool_call_id=call_id, result=result, **{"success": True, **fields}),
    ]


CALLS = [
    *called(1, "db-query", {"sql": "select 1"}, "one\ntwo\n"),
    *called(2, "bash", {"command": "ls"}, "a.txt", server=None),
    *called(3, "mcp__db__query", {"sql": "select 1"}, "one\ntwo\n"),
    *called(4, "db-insert", {"row": 1}, "duplicate key", success=False),
    *called(5, "db-list", None, {"rows": [1, 2.5, None, "x"]}),
    *called(6, "db-hangs", {}, None),
]


@pytest.fixture
def simulate(tmp_path: Path) -> Simulate:
    def run(*words: str, calls: list[Any] = CALLS, **fields: Any) -> CliResult:
        result = trial_result("s", trajectory=trajectory(*calls), **fields)
        directory = tmp_path / "vally-results" / "run"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "results.jsonl").write_bytes(record_line(dump_record(result)))
        found = run_cli(["simulate", "record", *(words if "latest" in words else ("latest", *words))], cwd=tmp_path)
        assert "Traceback" not in found.stderr
        return found

    return run


def overrides(result: CliResult) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    found: list[dict[str, Any]] = yaml.safe_load(result.stdout)["simulation"]["tool_overrides"]
    return found


def test_a_call_id_that_is_used_again(simulate: Simulate) -> None:
    calls = [
        *called(1, "db-query", {"sql": "one"}, "first"),
        *called(1, "db-query", {"sql": "two"}, None),
        *called(1, "db-query", {"sql": "three"}, "third"),
    ]
    result = simulate(calls=calls)
    assert [(item["arguments"]["sql"], item["result"]) for item in overrides(result)] == [
        ("one", "first"),
        ("three", "third"),
    ]
    assert result.stderr.count("a call of 'db-query' has no result and is left out") == 1


def test_calls_without_an_id_have_no_result(simulate: Simulate) -> None:
    calls = [*called("", "db-query", {"sql": "one"}, "first"), *called("", "db-query", {"sql": "two"}, "second")]
    result = simulate(calls=calls)
    assert (result.exit_code, "a call of 'db-query' has no result and is left out" in result.stderr) == (1, True)


def test_integers_that_specs_do_not_hold(simulate: Simulate, tmp_path: Path) -> None:
    calls = [
        *called(1, "db-get", {"id": 2**53 - 1}, {"ids": [2**63, 1], "ratio": 0.5, "name": "é"}),
        *called(2, "db-get", {"filter": [{"id": 2**53}]}, "found"),
        *called(3, "db-get", {"id": True}, [-(2**53), "x"]),
    ]
    result = simulate(calls=calls)
    assert [(item["arguments"], item["result"]) for item in overrides(result)] == [
        ({"id": 2**53 - 1}, '{"ids": [9223372036854775808, 1], "ratio": 0.5, "name": "é"}'),
        ({"id": True}, '[-9007199254740992, "x"]'),
    ]
    assert "warning: a call of 'db-get' has a number of more digits than specs hold and is left out" in result.stderr
    path = tmp_path / "eval.yaml"
    indented = "".join(f"    {line}\n" for line in result.stdout.splitlines())
    path.write_text(f"name: e\nstimuli:\n  - name: s\n    prompt: p\n{indented}", encoding="utf-8")
    assert load_eval_spec(path, host=PluginHost.from_objects()).stimuli[0].simulation


def test_the_tools_of_mcp_servers(simulate: Simulate) -> None:
    result = simulate()
    assert overrides(result) == [
        {"tool": "query", "server": "db", "arguments": {"sql": "select 1"}, "result": "one\ntwo\n"},
        {"tool": "list", "server": "db", "arguments": {}, "result": {"rows": [1, 2.5, None, "x"]}},
    ]
    assert "      result: |\n        one\n        two\n" in result.stdout
    assert "warning: a call of 'db-insert' failed and is left out" in result.stderr
    assert "warning: a call of 'db-hangs' has no result and is left out" in result.stderr
    assert "look them through for secrets" in result.stderr


def test_chosen_tools(simulate: Simulate) -> None:
    result = simulate("--tool", "^ba", "--tool", "list$")
    assert [item["tool"] for item in overrides(result)] == ["bash", "list"]
    assert "the server of 'bash' was not recorded" in result.stderr
    assert "server" not in overrides(result)[0]


def test_json(simulate: Simulate) -> None:
    assert json.loads(simulate("--format", "json").stdout)["simulation"]["tool_overrides"] == overrides(simulate())


@pytest.mark.parametrize(("policy", "kept"), [("first", "a"), ("last", "b")])
def test_different_results_of_one_call(policy: str, kept: str, simulate: Simulate) -> None:
    calls = [*called(1, "q", {"n": 1}, "a"), *called(2, "q", {"n": 1.0}, "b"), *called(3, "z", {}, "c")]
    result = simulate("--on-conflict", policy, calls=calls)
    assert [(item["tool"], item["result"]) for item in overrides(result)] == [("q", kept), ("z", "c")]
    assert f"gave different results; the {policy} is taken" in result.stderr


def test_a_conflict_as_an_error(simulate: Simulate) -> None:
    result = simulate("--on-conflict", "error", calls=[*called(1, "q", {}, "a"), *called(2, "q", {}, "b")])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "tool 'q' with arguments {} gave different results" in result.stderr


def test_long_results_are_cut(simulate: Simulate) -> None:
    calls = [*called(1, "q", {}, "äöü"), *called(2, "j", {}, {"a": "x" * 50})]
    result = simulate("--max-bytes", "5", calls=calls)
    assert [item["result"] for item in overrides(result)] == ["äö", '{"a":']
    assert "a result of 'q' was cut from 6 to 5 bytes" in result.stderr


@pytest.mark.parametrize(
    ("words", "calls", "hint"),
    [
        ([], called(1, "bash", {}, "x", server=None), "name others with --tool"),
        (["--tool", "nothing"], CALLS, "matches --tool"),
        ([], [], "name others with --tool"),
    ],
)
def test_nothing_to_record(words: list[str], calls: list[Any], hint: str, simulate: Simulate) -> None:
    result = simulate(*words, calls=calls)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no tool call to record" in result.stderr
    assert hint in result.stderr


def test_the_selection_must_leave_one(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    made = [trial_result("s", trajectory=trajectory(*CALLS), model=model) for model in ("m1", "m2")]
    (directory / "results.jsonl").write_bytes(b"".join(record_line(dump_record(item)) for item in made))
    several = run_cli(["simulate", "record", "run"], cwd=tmp_path)
    assert several.exit_code == 1
    assert "2 trajectories match" in several.stderr
    assert "--stimulus 's' --model 'm2' --variant 'main'" in several.stderr
    assert run_cli(["simulate", "record", "run", "--model", "m2"], cwd=tmp_path).exit_code == 0
    missing = run_cli(["simulate", "record", "run", "--trial", "3"], cwd=tmp_path)
    assert "--trial is one of: 0" in missing.stderr


def test_an_output_file_is_replaced_with_force_only(tmp_path: Path, simulate: Simulate) -> None:
    target = tmp_path / "made" / "overrides.yaml"
    assert simulate("--output-file", "made/overrides.yaml").stdout == ""
    first = target.read_text()
    assert yaml.safe_load(first)["simulation"]
    refused = simulate("--output-file", "made/overrides.yaml", "--tool", "bash")
    assert refused.exit_code == 1
    assert "made/overrides.yaml exists" in refused.stderr
    assert target.read_text() == first
    assert simulate("--output-file", "made/overrides.yaml", "--tool", "bash", "--force").exit_code == 0
    assert target.read_text() != first


def test_marks_of_redaction_are_named(simulate: Simulate) -> None:
    assert "marks of redacted values" in simulate(calls=called(1, "q", {}, "a <redacted:X_TOKEN>")).stderr


def test_a_session_log(tmp_path: Path) -> None:
    lines = [
        {"type": "session.start", "id": "1", "data": {"sessionId": "s"}},
        {"type": "user.message", "id": "2", "data": {"content": "go"}},
        {"type": "assistant.turn_start", "id": "3", "data": {"turnId": "0"}},
        {
            "type": "tool.execution_start",
            "id": "4",
            "data": {"toolCallId": "c", "toolName": "db-query", "mcpServerName": "db", "arguments": {"n": 1}},
        },
        {
            "type": "tool.execution_complete",
            "id": "5",
            "data": {"toolCallId": "c", "success": True, "result": {"content": "one"}},
        },
        {"type": "assistant.turn_end", "id": "6", "data": {"turnId": "0"}},
    ]
    (tmp_path / "session").mkdir()
    (tmp_path / "session" / "events.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    for word in ("session", "session/events.jsonl"):
        result = run_cli(["simulate", "record", word], cwd=tmp_path)
        assert overrides(result) == [{"tool": "query", "server": "db", "arguments": {"n": 1}, "result": "one"}]


@pytest.mark.parametrize(
    ("name", "server", "plain"),
    [
        ("db-query", "db", "query"),
        ("mcp__db__query", "db", "query"),
        ("db_query", "db", "query"),
        ("query", "db", "query"),
        ("dbquery", "db", "dbquery"),
        ("db-", "db", "db-"),
        ("db-query", None, "db-query"),
    ],
)
def test_the_name_that_the_server_knows(name: str, server: str | None, plain: str) -> None:
    assert plain_name(name, server) == plain


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e15, 1e15) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(string.printable), inner, max_size=3),
    max_leaves=5,
)
TEXTS = st.text(st.sampled_from("a 1:#-'\"|>\n\t\r\x85\u2028\u202e\ufeff\\{}é😀\x7f~yn.0e"), max_size=30)


@settings(max_examples=150, deadline=None)
@given(arguments=st.dictionaries(st.text(string.printable), JSON, max_size=3), result=JSON | TEXTS)
def test_the_block_is_read_as_it_was_recorded(
    tmp_path_factory: pytest.TempPathFactory, arguments: Any, result: Any
) -> None:
    block = yaml_block([{"tool": "t", "server": "s", "arguments": arguments, "result": result}])
    path = tmp_path_factory.mktemp("block") / "eval.yaml"
    indented = "".join(f"    {line}\n" if line else "\n" for line in block.split("\n")[:-1])
    path.write_text(f"name: e\nstimuli:\n  - name: s\n    prompt: p\n{indented}", encoding="utf-8")
    spec = load_eval_spec(path, host=PluginHost.from_objects())
    simulation: Any = spec.stimuli[0].simulation
    (entry,) = simulation["tool_overrides"]
    assert (entry["arguments"], entry["result"]) == (arguments, result)
