"""What each profile tells its agent: command line, environment, files; and what it refuses."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from vally import ConfigInvalid, ExecutorError, McpServer, PluginHost, RunContext, Trajectory
from vally.testing import tree_digest
from vally_executor_command.config import CommandConfig
from vally_executor_command.executor import CommandExecutor
from vally_executor_command.profiles import PROFILES

pytestmark = pytest.mark.anyio
Execute = Callable[..., Awaitable[Trajectory]]
Reports = Callable[[], list[dict[str, Any]]]
KEY, HEADER, MCP_VALUE = "the-canary-key-1", "the-canary-header-2", "the-canary-value-3"

# Writes down what it was given, and says something that is JSON.
SPY = """
import json, os, sys
directory = os.environ["REPORTS"]
report = {"argv": sys.argv[1:], "stdin": sys.stdin.read(), "env": dict(os.environ)}
with open(os.path.join(directory, f"{len(os.listdir(directory))}.json"), "w") as file:
    json.dump(report, file)
print('{"type": "spy", "thread_id": "told", "session_id": "told", "sessionID": "told"}')
if "exec" in sys.argv:
    print('{"type": "thread.started", "thread_id": "told"}')
elif "run" not in sys.argv:
    print('{"type": "init", "session_id": "told"}')
"""
PROVIDERS: dict[str, dict[str, Any]] = {
    "copilot": {"type": "openai", "baseUrl": "http://127.0.0.1:9/v1"},
    "claude": {"type": "anthropic", "baseUrl": "http://127.0.0.1:9"},
    "codex": {"type": "openai", "baseUrl": "http://127.0.0.1:9/v1"},
    "gemini": {"type": "gemini", "baseUrl": "http://127.0.0.1:9"},
    "opencode": {"type": "openai", "baseUrl": "http://127.0.0.1:9/v1"},
}
SERVERS = {
    "calc": McpServer(name="calc", type="stdio", command="calc", args=("-v",), env={"SECRET": MCP_VALUE}, cwd="/srv"),
    "far": McpServer(name="far", type="http", url="http://127.0.0.1:9/mcp", headers={"x-far": MCP_VALUE}),
}


@pytest.fixture
def told(
    execute: Execute, agent: Callable[..., str], reports: Reports, tmp_path: Path, work_dir: Path
) -> Callable[..., Awaitable[list[dict[str, Any]]]]:
    """Run a profile with a spy in place of its agent, and return what the spy was given."""

    async def run(name: str, *prompts: str, config: Mapping[str, Any] | None = None, **options: Any) -> Any:
        agent(SPY, name=name)
        home = tmp_path / "trial" / "home"
        home.mkdir(parents=True, exist_ok=True)
        path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
        before = tree_digest(work_dir)
        await execute(
            {"profile": name, **(config or {})},
            *prompts,
            env={"HOME": str(home), "PATH": path},
            process_env={"MY_KEY": KEY, "HOME": str(tmp_path / "caller")},
            **{"model": "m-1", **options},
        )
        assert tree_digest(work_dir) == before
        return reports()

    return run


def provider(name: str, **keys: Any) -> dict[str, Any]:
    return {"provider": {**PROVIDERS[name], "apiKeyEnv": "MY_KEY", "headers": {"x-team": HEADER}, **keys}}


ARGV: dict[str, tuple[list[str], list[str]]] = {
    "copilot": (
        ["--prompt=first", "--allow-all-tools", "--allow-all-paths", "--no-ask-user", "--output-format", "json",
         "--usage-output-file", "{trial}/usage-0.json", "--model", "m-1", "--session-id={id}"],
        ["--prompt=second", "--allow-all-tools", "--allow-all-paths", "--no-ask-user", "--output-format", "json",
         "--usage-output-file", "{trial}/usage-1.json", "--model", "m-1", "--resume={id}"],
    ),
    "claude": (
        ["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "bypassPermissions", "--model",
         "m-1", "--strict-mcp-config", "--setting-sources", "user", "--add-dir", "{work}", "--", "first"],
        ["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "bypassPermissions", "--model",
         "m-1", "--resume", "{id}", "--strict-mcp-config", "--setting-sources", "user", "--add-dir", "{work}", "--",
         "second"],
    ),
    "codex": (
        ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "m-1", "-c",
         "project_root_markers=[]", "-c", "analytics.enabled=false", "--", "first"],
        ["exec", "resume", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m",
         "m-1", "-c", "project_root_markers=[]", "-c", "analytics.enabled=false", "--", "told", "second"],
    ),
    "gemini": (
        ["--prompt=first", "--yolo", "--output-format", "stream-json", "-m", "m-1"],
        ["--prompt=second", "--yolo", "--output-format", "stream-json", "-m", "m-1", "-r", "told"],
    ),
    "opencode": (
        ["run", "--format", "json", "--thinking", "--print-logs", "--log-level", "WARN", "-m", "m-1"],
        ["run", "--format", "json", "--thinking", "--print-logs", "--log-level", "WARN", "-m", "m-1", "--session",
         "told"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROFILES)
async def test_the_command_lines_of_two_turns(
    name: str, told: Callable[..., Any], tmp_path: Path, work_dir: Path, trial_id: str
) -> None:
    values = {"trial": tmp_path / "trial", "work": work_dir, "id": trial_id}
    found = [report["argv"] for report in await told(name, "first", "second")]
    assert found == [[word.format_map(values) for word in turn] for turn in ARGV[name]]


@pytest.mark.parametrize("name", PROFILES)
async def test_a_prompt_that_looks_like_an_option_stays_a_prompt(name: str, told: Callable[..., Any]) -> None:
    (report,) = await told(name, "--version")
    argv = report["argv"]
    if name == "opencode":
        assert (report["stdin"], "--version" in argv) == ("--version", False)
    else:
        assert (argv[-2:] == ["--", "--version"]) or "--prompt=--version" in argv


@pytest.mark.parametrize("name", PROFILES)
async def test_a_long_prompt_goes_by_stdin(name: str, told: Callable[..., Any]) -> None:
    prompt = "x" * 200_000
    if name != "opencode":
        with pytest.raises(ExecutorError, match=r"use 'prompt: stdin'$"):
            await told(name, prompt)
    first, second = await told(name, prompt, "again", config={"prompt": "stdin"})
    assert (first["stdin"], second["stdin"]) == (prompt, "again")
    assert not any(prompt in word or "--prompt" in word for word in first["argv"])


@pytest.mark.parametrize("name", PROFILES)
async def test_secrets_stand_in_no_command_line(name: str, told: Callable[..., Any], tmp_path: Path) -> None:
    (report,) = await told(name, config=provider(name), mcp_servers=SERVERS)
    command_line = json.dumps(report["argv"])
    for secret in (KEY, HEADER, MCP_VALUE):
        assert secret not in command_line
    assert KEY in report["env"].values()
    assert any(HEADER in value for value in report["env"].values())
    files = [path for path in (tmp_path / "trial").rglob("*") if path.is_file()]
    assert not [path for path in files if KEY in path.read_text() or HEADER in path.read_text()]
    assert {path.stat().st_mode & 0o077 for path in files} <= {0}


EXPECTED_ENV: dict[str, dict[str, str]] = {
    "copilot": {
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_BASE_URL": "http://127.0.0.1:9/v1",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_PROVIDER_WIRE_API": "completions",
        "COPILOT_PROVIDER_HEADERS": f"x-team: {HEADER}",
        "COPILOT_MODEL": "m-1",
        "COPILOT_OFFLINE": "true",
    },
    "claude": {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_CUSTOM_HEADERS": f"x-team: {HEADER}",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
    },
    "codex": {"AGENT_PROVIDER_KEY": KEY, "AGENT_PROVIDER_HEADER_0": HEADER},
    "gemini": {
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9",
        "GEMINI_API_KEY": KEY,
        "GEMINI_CLI_CUSTOM_HEADERS": f"x-team: {HEADER}",
    },
    "opencode": {"AGENT_PROVIDER_KEY": KEY, "AGENT_PROVIDER_HEADER_0": HEADER, "OPENCODE_DISABLE_PROJECT_CONFIG": "1"},
}


@pytest.mark.parametrize("name", PROFILES)
async def test_the_environment_of_a_provider(name: str, told: Callable[..., Any]) -> None:
    (report,) = await told(name, config=provider(name))
    assert report["env"].items() >= EXPECTED_ENV[name].items()


@pytest.mark.parametrize("name", PROFILES)
async def test_variables_of_the_config_beat_those_of_the_profile(name: str, told: Callable[..., Any]) -> None:
    chosen = next(iter(EXPECTED_ENV[name]))
    (report,) = await told(name, config={**provider(name), "env": {chosen: "mine-{model}"}})
    assert report["env"][chosen].startswith("mine-")


async def test_the_provider_of_codex(told: Callable[..., Any]) -> None:
    (report,) = await told("codex", config=provider("codex", maxPromptTokens=1000))
    options = [word for flag, word in zip(report["argv"], report["argv"][1:], strict=False) if flag == "-c"]
    config = tomllib.loads("\n".join(options))
    assert config["model_provider"] == "vally"
    assert config["model_context_window"] == 1000
    assert config["model_providers"]["vally"] == {
        "name": "vally",
        "base_url": "http://127.0.0.1:9/v1",
        "wire_api": "responses",
        "env_key": "AGENT_PROVIDER_KEY",
        "env_http_headers": {"x-team": "AGENT_PROVIDER_HEADER_0"},
    }


async def test_the_servers_of_codex(told: Callable[..., Any], tmp_path: Path) -> None:
    odd = {'a"b\\ \x7f é': McpServer(name="odd", type="stdio", command="x", timeout_ms=5000, tools=("t",))}
    await told("codex", mcp_servers={**SERVERS, **odd})
    config = tomllib.loads((tmp_path / "trial" / "home" / ".codex" / "config.toml").read_text())
    servers = config["mcp_servers"]
    assert list(servers) == ["calc", "far", *odd]
    assert servers["calc"]["env"] == {"SECRET": MCP_VALUE}
    assert servers["far"]["http_headers"] == {"x-far": MCP_VALUE}
    assert all(server["required"] for server in servers.values())
    told_odd = servers[next(iter(odd))]
    assert told_odd.pop("args")[-1] == "x"
    assert told_odd | {"env": {}} == {
        "command": "/bin/sh",
        "env": {},
        "enabled_tools": ["t"],
        "startup_timeout_sec": 5,
        "required": True,
    }


async def test_the_configuration_of_opencode(told: Callable[..., Any], work_dir: Path, tmp_path: Path) -> None:
    (work_dir / "AGENTS.md").write_text("be kind")
    named = {"calc": McpServer(name="calc", type="stdio", command="c", tools=("add",))}
    config = provider("opencode", model="wire", maxPromptTokens=1000, wireApi="responses")
    (report,) = await told("opencode", config=config, mcp_servers=named)
    assert "vally/wire" in report["argv"]
    found = json.loads(Path(report["env"]["OPENCODE_CONFIG"]).read_text())
    about = found["provider"]["vally"]
    assert (about["npm"], about["options"]["apiKey"]) == ("@ai-sdk/openai", "{env:AGENT_PROVIDER_KEY}")
    assert about["models"]["wire"]["limit"]["context"] == 1000
    assert found["instructions"] == [str(work_dir / "AGENTS.md")]
    assert list(found["permission"].items())[2:] == [("calc_*", "deny"), ("calc_add", "allow")]


async def test_the_settings_of_gemini(told: Callable[..., Any], tmp_path: Path) -> None:
    await told("gemini", config=provider("gemini"), mcp_servers=SERVERS)
    settings = json.loads((tmp_path / "trial" / "home" / ".gemini" / "settings.json").read_text())
    assert settings["security"] == {"auth": {"selectedType": "gemini-api-key"}}
    assert settings["mcpServers"]["calc"]["env"] == {"SECRET": MCP_VALUE}
    assert settings["mcpServers"]["far"]["httpUrl"] == "http://127.0.0.1:9/mcp"


async def test_claude_starts_servers_where_they_belong(told: Callable[..., Any]) -> None:
    slow = McpServer(name="slow", type="stdio", command="slow", timeout_ms=45_000)
    (report,) = await told("claude", mcp_servers={**SERVERS, "slow": slow})
    assert report["env"]["MCP_TIMEOUT"] == "45000"
    argv = report["argv"]
    document = json.loads(Path(argv[argv.index("--mcp-config") + 1]).read_text())["mcpServers"]
    assert document["calc"]["args"][2:5] == ["sh", "/srv", "/bin/sh"]
    assert document["calc"]["args"][-2:] == ["calc", "-v"]
    assert document["far"]["url"] == "http://127.0.0.1:9/mcp"


async def test_claude_finds_what_the_workspace_has(told: Callable[..., Any], work_dir: Path, tmp_path: Path) -> None:
    (work_dir / ".claude" / "agents").mkdir(parents=True)
    (work_dir / ".claude" / "agents" / "a.md").write_text("x")
    (work_dir / ".claude" / "settings.json").write_text("{}")
    (report,) = await told("claude")
    assert (tmp_path / "trial" / "home" / ".claude" / "agents" / "a.md").read_text() == "x"
    assert str(work_dir / ".claude" / "settings.json") in report["argv"]


@pytest.mark.parametrize(("own", "handed_over"), [((), True), (("CLAUDE.md",), False), ((".claude/CLAUDE.md",), False)])
async def test_claude_reads_what_other_agents_are_told_where_there_is_nothing_for_it(
    own: tuple[str, ...], handed_over: bool, told: Callable[..., Any], work_dir: Path, tmp_path: Path
) -> None:
    for name in ("AGENTS.md", *own):
        (work_dir / name).parent.mkdir(exist_ok=True)
        (work_dir / name).write_text(name)
    await told("claude")
    read = tmp_path / "trial" / "home" / ".claude" / "CLAUDE.md"
    assert read.exists() is handed_over
    assert not handed_over or read.read_text() == "AGENTS.md"


async def test_copilot_uses_what_it_has_unpacked_for_the_caller(told: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "package.json").write_text('{"name": "@github/copilot-linux-x64", "version": "9.9.9"}')
    cache = tmp_path / "caller" / ".cache" / "copilot"
    (first,) = await told("copilot")
    assert "COPILOT_PKG_CACHE_HOME" not in first["env"]
    (cache / "pkg" / "linux-x64" / "9.9.9").mkdir(parents=True)
    _, second = await told("copilot")
    assert second["env"]["COPILOT_PKG_CACHE_HOME"] == str(cache)


@pytest.mark.parametrize("name", PROFILES)
async def test_the_callers_home_is_not_written_to(name: str, told: Callable[..., Any], tmp_path: Path) -> None:
    home = tmp_path / "trial" / "home"
    (report,) = await told(name, config={**(provider(name) if name != "gemini" else {}), "home": "host"})
    assert list(home.iterdir()) == []
    assert not {"--setting-sources", "project_root_markers=[]"} & set(report["argv"])


@pytest.mark.parametrize("name", ["codex", "gemini"])
async def test_servers_that_need_a_file_in_the_home(name: str, told: Callable[..., Any]) -> None:
    with pytest.raises(ExecutorError, match="does not support MCP servers with 'home: host'") as caught:
        await told(name, config={"home": "host"}, mcp_servers=SERVERS)
    assert caught.value.code == "unsupported-option"


async def test_a_provider_that_needs_a_file_in_the_home(told: Callable[..., Any]) -> None:
    with pytest.raises(ExecutorError, match="does not support a provider with 'home: host'"):
        await told("gemini", config={**provider("gemini"), "home": "host"})


async def test_what_only_a_profile_can_refuse(told: Callable[..., Any]) -> None:
    chosen = {"calc": McpServer(name="calc", type="stdio", command="c", tools=("add",))}
    streamed = {"far": McpServer(name="far", type="sse", url="http://127.0.0.1:9")}
    for name, servers, what in (("claude", chosen, "'tools' of MCP server 'calc'"), ("codex", streamed, "type sse")):
        with pytest.raises(ExecutorError, match=what) as caught:
            await told(name, mcp_servers=servers)
        assert caught.value.code == "unsupported-option"


@pytest.mark.parametrize("name", ["gemini"])
async def test_an_agent_that_needs_a_model(name: str, told: Callable[..., Any]) -> None:
    with pytest.raises(ExecutorError, match=r"needs a model: set 'defaults\.model'") as caught:
        await told(name, model=None)
    assert caught.value.code == "executor-config"


@pytest.mark.parametrize("name", PROFILES)
async def test_a_provider_may_name_the_model(name: str, told: Callable[..., Any]) -> None:
    with pytest.raises(ExecutorError, match="needs a model"):
        await told(name, config=provider(name), model=None)
    (report,) = await told(name, config=provider(name, model="wire"), model=None)
    assert any("wire" in word for word in report["argv"])


@pytest.mark.parametrize("name", PROFILES)
async def test_a_key_that_is_not_set(name: str, told: Callable[..., Any]) -> None:
    with pytest.raises(ExecutorError, match=r"provider.apiKeyEnv: environment variable 'NO_KEY' is not set"):
        await told(name, config=provider(name, apiKeyEnv="NO_KEY"))


@pytest.mark.parametrize("name", PROFILES)
async def test_an_agent_that_is_not_installed(name: str, execute: Execute, tmp_path: Path) -> None:
    with pytest.raises(ExecutorError, match=rf"npm install -g {PROFILES[name].package}'") as caught:
        await execute({"profile": name}, model="m", env={"PATH": str(tmp_path), "HOME": str(tmp_path)})
    assert (caught.value.code, caught.value.retryable) == ("executor-unavailable", False)
    assert "\n" not in caught.value.message


async def test_preflight_tells_how_to_install_an_agent_or_which_there_is(
    agent: Callable[..., str], tmp_path: Path
) -> None:
    executor, config = CommandExecutor(), CommandConfig.model_validate({"profile": "claude"})
    path = {"PATH": str(tmp_path / "bin")}
    executor.configure(RunContext(run_id="r", cache_dir=tmp_path, project_root=tmp_path, process_env=path))
    with pytest.raises(ExecutorError, match="'claude' was not found on PATH; install it with 'npm install -g @anth"):
        await executor.preflight(config)
    program = agent("pass", name="claude")
    assert await executor.preflight(config) == program
    (tmp_path / "package.json").write_text('{"name": "@anthropic-ai/claude-code", "version": "9.9.9"}')
    assert await executor.preflight(config) == f"{program}, version 9.9.9"


async def test_an_address_with_a_version_is_warned_of_once(
    told: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    executor = CommandExecutor()
    config = provider("claude", baseUrl="http://127.0.0.1:9/v1/")
    for _ in range(2):
        *_, report = await told("claude", config=config, executor=executor)
        assert report["env"]["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9"
    assert [text for text in caplog.messages if "baseUrl" in text] == [
        "provider.baseUrl: '/v1' at its end is ignored; write 'http://127.0.0.1:9'"
    ]


@pytest.mark.parametrize(
    ("name", "above"),
    [("copilot", ".github/skills/x/SKILL.md"), ("copilot", ".claude/commands/x.md"), ("gemini", ".gemini/.env")],
)
async def test_what_lies_above_the_workspace(
    name: str, above: str, told: Callable[..., Any], tmp_path: Path, work_dir: Path
) -> None:
    (tmp_path / above).parent.mkdir(parents=True)
    (tmp_path / above).write_text("x")
    with pytest.raises(ExecutorError, match=f"the workspace lies below '{tmp_path}'") as caught:
        await told(name)
    assert caught.value.code == "executor-config"
    if name == "copilot":
        (work_dir / ".git").mkdir()
        await told(name)


@pytest.mark.parametrize("name", PROFILES)
def test_what_a_profile_can_do(name: str) -> None:
    can = CommandExecutor().capabilities_for(CommandConfig.model_validate({"profile": name}))
    assert (can.multi_turn, can.turn_completion, can.skills, can.mcp) == (True, True, True, True)
    assert can.reasoning_effort is (name != "gemini")
    assert can.attachments is False


@pytest.mark.parametrize("name", PROFILES)
def test_a_command_of_ones_own_can_do_less(name: str) -> None:
    config = CommandConfig.model_validate({"profile": name, "command": ["agent", "{prompt}"], "skillsDir": None})
    can = CommandExecutor().capabilities_for(config)
    assert (can.skills, can.reasoning_effort) == (False, False)
    assert can.mcp is PROFILES[name].mcp_by_file


@pytest.mark.parametrize("name", [name for name in PROFILES if name != "gemini"])
async def test_the_reasoning_effort_is_told(name: str, told: Callable[..., Any]) -> None:
    (report,) = await told(name, reasoning_effort="high")
    assert any("high" in word for word in report["argv"])


async def test_the_trajectory_names_profile_and_gaps(
    execute: Execute, agent: Callable[..., str], tmp_path: Path
) -> None:
    program = agent('print(\'{"type": "init", "session_id": "s"}\')')
    trajectory = await execute(
        {"profile": "gemini", "command": [program]}, env={"HOME": str(tmp_path / "h")}, model="m"
    )
    assert trajectory.metadata["profile"] == "gemini"
    assert trajectory.metadata["gaps"] == list(PROFILES["gemini"].gaps)


INVALID: dict[str, tuple[dict[str, Any], str]] = {
    "misspelt key": ({"profle": "claude"}, "unknown key 'profle'"),
    "no profile": ({"profile": None}, "'command' or 'profile' is required"),
    "no text": ({"profile": ["claude"]}, "'profile' must be a string"),
    "unknown profile": (
        {"profile": "claud"},
        "'profile' must be one of: copilot, claude, codex, gemini, opencode; did",
    ),
    "provider without profile": (
        {"command": ["a"], "provider": PROVIDERS["codex"]},
        "'provider' needs 'profile'; without one",
    ),
    "other family": (
        {"profile": "claude", "provider": PROVIDERS["codex"]},
        "profile 'claude' speaks anthropic, not provider.type 'openai'",
    ),
    "other request": (
        {"profile": "codex", "provider": {**PROVIDERS["codex"], "wireApi": "completions"}},
        "profile 'codex' sends responses, not provider.wireApi 'completions'",
    ),
    "limit": (
        {"profile": "gemini", "provider": {**PROVIDERS["gemini"], "maxPromptTokens": 5}},
        "profile 'gemini' cannot tell its agent provider.maxPromptTokens",
    ),
    "version": (
        {"profile": "codex", "provider": {**PROVIDERS["codex"], "apiVersion": "1"}},
        "profile 'codex' cannot tell its agent provider.apiVersion",
    ),
    "unknown family": (
        {"profile": "codex", "provider": {**PROVIDERS["codex"], "type": "x"}},
        "'provider.type' must be",
    ),
    "unknown dialect": ({"command": ["a"], "dialect": "codx"}, "did you mean 'codex'?"),
}


@pytest.mark.parametrize(("config", "problem"), INVALID.values(), ids=INVALID.keys())
def test_configs_that_cannot_be(config: dict[str, Any], problem: str) -> None:
    host = PluginHost()
    with pytest.raises(ConfigInvalid) as caught:
        host.parse_config(host.require("executor", "command"), config)
    assert any(problem in found for found in caught.value.problems), caught.value.problems
