"""Templates: rows CM of the plugin chapter, and what else a command line may hold."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from vally import ExecutorError, McpServer, Trajectory
from vally_executor_command.config import CommandConfig
from vally_executor_command.staging import read_text, write_private

pytestmark = pytest.mark.anyio
Execute = Callable[..., Awaitable[Trajectory]]
Reports = Callable[[], list[dict[str, Any]]]


async def case_cm_1(execute: Execute, spy: str, reports: Reports) -> None:
    await execute({"command": [spy, "-p", "{prompt}"]}, "x y")
    assert (reports()[0]["argv"], reports()[0]["stdin"]) == (["-p", "x y"], "")


async def case_cm_2(execute: Execute, spy: str, reports: Reports) -> None:
    await execute({"command": [spy, ["--model", "{model}"]]}, "x y")
    assert (reports()[0]["argv"], reports()[0]["stdin"]) == ([], "x y")


async def case_cm_3(execute: Execute, spy: str, reports: Reports) -> None:
    with pytest.raises(ExecutorError, match="has no value") as caught:
        await execute({"command": [spy, "--model={model}"]})
    assert (caught.value.code, caught.value.retryable, reports()) == ("executor-config", False, [])


async def case_cm_4(execute: Execute, spy: str, reports: Reports) -> None:
    template = [spy, "{{x}}", "{turn}"]
    await execute({"command": template, "continueCommand": template}, "first", "second")
    assert reports()[1]["argv"] == ["{x}", "1"]


@pytest.mark.parametrize("case", [case_cm_1, case_cm_2, case_cm_3, case_cm_4], ids=["CM-1", "CM-2", "CM-3", "CM-4"])
async def test_rows(case: Callable[..., Awaitable[None]], execute: Execute, spy: str, reports: Reports) -> None:
    await case(execute, spy, reports)


async def test_every_placeholder(
    execute: Execute, spy: str, reports: Reports, work_dir: Path, tmp_path: Path, trial_id: str
) -> None:
    names = ["workspace", "trial_dir", "model", "reasoning_effort", "session_id", "usage_file", "turn", "prompt_file"]
    servers = {
        "calc": McpServer(name="calc", type="stdio", command="/bin/calc", args=("-x",), env={"A": "1"}, cwd="/w"),
        "web": McpServer(name="web", type="http", url="http://127.0.0.1:1", headers={"H": "v"}, tools=("t",)),
    }
    await execute(
        {"command": [spy, *(f"<{{{name}}}>" for name in names), "{mcp_config}"]},
        "what to do",
        model="m",
        reasoning_effort="low",
        mcp_servers=servers,
    )
    trial = tmp_path / "trial"
    *values, mcp = reports()[0]["argv"]
    expected = [work_dir, trial, "m", "low", trial_id, trial / "usage-0.json", "0", trial / "prompt-0.txt"]
    assert values == [f"<{value}>" for value in expected]
    assert (trial / "prompt-0.txt").read_text() == "what to do"
    told = json.loads(Path(mcp).read_text())
    # A shell before the server notices what becomes of it.
    assert told["mcpServers"]["calc"].pop("args")[-2:] == ["/bin/calc", "-x"]
    assert told == {
        "mcpServers": {
            "calc": {"type": "stdio", "command": "/bin/sh", "env": {"A": "1"}, "cwd": "/w"},
            "web": {"type": "http", "url": "http://127.0.0.1:1", "headers": {"H": "v"}, "tools": ["t"]},
        }
    }
    assert Path(mcp).stat().st_mode & 0o077 == 0
    assert list(work_dir.iterdir()) == []


async def test_a_group_is_kept_whole_or_dropped_whole(execute: Execute, spy: str, reports: Reports) -> None:
    command = [spy, ["--model", "{model}", "--effort", "{reasoning_effort}"], ["--mcp", "{mcp_config}"], ["-n"]]
    await execute({"command": command}, model="m")
    await execute({"command": command}, model="m", reasoning_effort="high")
    assert [report["argv"] for report in reports()] == [["-n"], ["--model", "m", "--effort", "high", "-n"]]


async def test_no_shell_reads_the_prompt(execute: Execute, spy: str, reports: Reports) -> None:
    prompt = "$(touch x) `id` \"quoted\" 'single' *\n{model} {{"
    await execute({"command": [spy, "{prompt}"]}, prompt)
    assert reports()[0]["argv"] == [prompt]


@pytest.mark.parametrize(
    ("config", "where"),
    [
        ({}, "stdin"),
        ({"prompt": "stdin"}, "stdin"),
        ({"extra": ["{prompt}"]}, "arg"),
        ({"extra": ["{prompt}"], "prompt": "stdin"}, "both"),
        ({"extra": ["{prompt_file}"]}, "file"),
        ({"extra": ["{prompt}", "{prompt_file}"], "prompt": "file"}, "arg"),
    ],
)
async def test_how_the_prompt_is_told(
    execute: Execute, spy: str, reports: Reports, config: dict[str, Any], where: str
) -> None:
    extra = config.pop("extra", []) if "extra" in config else []
    await execute({"command": [spy, *extra], **config}, "héllo")
    report = reports()[0]
    assert report["stdin"] == ("héllo" if where in ("stdin", "both") else "")
    assert ("héllo" in report["argv"]) == (where in ("arg", "both"))
    if where == "file":
        assert Path(report["argv"][0]).read_text(encoding="utf-8") == "héllo"


async def test_a_long_prompt_does_not_fit_an_argument(execute: Execute, spy: str, reports: Reports) -> None:
    with pytest.raises(ExecutorError, match="use 'prompt: stdin'") as caught:
        await execute({"command": [spy, "{prompt}"]}, "é" * (51 * 1024))
    assert (caught.value.code, reports()) == ("executor-config", [])
    await execute({"command": [spy, "{prompt}"]}, "x" * (100 * 1024))
    await execute({"command": [spy]}, "x" * 2**20)
    assert [len(report["stdin"]) for report in reports()] == [0, 2**20]


INVALID: dict[str, tuple[dict[str, Any], str]] = {
    "no command": ({}, "'command' or 'profile' is required"),
    "empty command": ({"command": []}, "the first item of a command must be the program"),
    "group first": ({"command": [["a"]]}, "the first item of a command must be the program"),
    "unknown placeholder": ({"command": ["a", "{modle}"]}, "unknown placeholder '{modle}' in '{modle}'"),
    "empty placeholder name": ({"command": ["a", "{}"]}, "unknown placeholder '{}'"),
    "single brace": ({"command": ["a", '{"k"']}, "single brace"),
    "placeholder in a group": ({"command": ["a", ["-x", "{y}"]]}, "unknown placeholder '{y}'"),
    "placeholder in env": ({"command": ["a"], "env": {"A": "{y}"}}, "unknown placeholder '{y}'"),
    "placeholder later": ({"command": ["a"], "continueCommand": ["a", "{y}"]}, "unknown placeholder '{y}'"),
    "dialect": ({"command": ["a"], "dialect": "klingon"}, "'dialect' must be one of: text"),
    "prompt": ({"command": ["a"], "prompt": "mail"}, "'prompt' must be"),
    "arg without place": ({"command": ["a"], "prompt": "arg"}, "'prompt: arg' needs '{prompt}' in 'command'"),
    "file without place": (
        {"command": ["a", "{prompt_file}"], "continueCommand": ["a"], "prompt": "file"},
        "'prompt: file' needs '{prompt_file}' in 'continueCommand'",
    ),
    "unknown key": ({"command": ["a"], "comand": ["a"]}, "unknown key 'comand'"),
    "no coercion": ({"command": "a b"}, "'command' must be a list"),
    "codes": ({"command": ["a"], "successExitCodes": ["0"]}, "'successExitCodes[0]' must be an integer"),
    "bytes": ({"command": ["a"], "maxOutputBytes": 0}, "'maxOutputBytes' must be"),
    "skills outside": ({"command": ["a"], "skillsDir": "../x"}, "'skillsDir' must be a relative path"),
    "skills absolute": ({"command": ["a"], "skillsDir": "/x"}, "'skillsDir' must be a relative path"),
    "reserved name": ({"command": ["a"], "env": {"Vally_Trial": "x"}}, "'env' name 'Vally_Trial' is reserved"),
    "unusable name": ({"command": ["a"], "env": {"A=B": "x"}}, "unusable name 'A=B'"),
}


@pytest.mark.parametrize(("config", "problem"), INVALID.values(), ids=INVALID.keys())
def test_invalid_configs_are_told_in_one_line(config: dict[str, Any], problem: str) -> None:
    from vally import ConfigInvalid, PluginHost

    host = PluginHost()
    with pytest.raises(ConfigInvalid) as caught:
        host.parse_config(host.require("executor", "command"), config)
    assert any(problem in found for found in caught.value.problems)
    assert not any("\n" in found for found in caught.value.problems)


def test_what_a_config_can_do() -> None:
    from vally_executor_command.executor import CommandExecutor

    plain = CommandExecutor().capabilities_for(CommandConfig(command=["a"]))
    assert (plain.env, plain.isolation, plain.session_log, plain.model) == (True, True, True, True)
    rest = ("skills", "mcp", "multi_turn", "turn_completion", "reasoning_effort", "attachments", "simulation")
    assert not any(getattr(plain, name) for name in rest)
    full = CommandExecutor().capabilities_for(
        CommandConfig(
            command=["a", ["{mcp_config}", "{reasoning_effort}"]], continue_command=["a"], skills_dir=".claude/skills"
        )
    )
    assert all(getattr(full, name) for name in rest[:5])
    assert (full.attachments, full.simulation) == (False, False)


LEFT = {
    "a link": lambda path: path.symlink_to(path.parent / "elsewhere"),
    "a link to nothing": lambda path: path.symlink_to(path.parent / "nothing"),
    "a pipe": os.mkfifo,
    "a directory": lambda path: (path / "full").mkdir(parents=True),
    "a longer file": lambda path: path.write_text("left by an agent"),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
@pytest.mark.parametrize("left", LEFT)
def test_what_an_agent_left_in_the_place_of_a_file_is_neither_followed_nor_waited_for(
    left: str, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").write_text("secret")
    path = tmp_path / "usage-1.json"
    LEFT[left](path)
    assert read_text(path) == ("left by an agent" if left == "a longer file" else "")
    write_private(path, "new")
    assert read_text(path) == "new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "elsewhere").read_text() == "secret"
    assert not (tmp_path / "nothing").exists()
