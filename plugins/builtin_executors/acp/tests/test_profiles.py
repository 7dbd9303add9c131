"""What the profiles tell their agents, and which configs they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vally import ConfigInvalid, ExecutorError, resolve_provider
from vally.testing import plugin_host, run_context
from vally_executor_acp import plugin
from vally_executor_acp.config import AcpConfig
from vally_executor_acp.executor import AcpExecutor
from vally_executor_acp.profiles import Wiring

(RECORD,) = plugin.vally_executors()
URL = "http://127.0.0.1:9"
KEY = "a-very-secret-key"


def parse(**config: Any) -> AcpConfig:
    parsed = plugin_host(RECORD).parse_config(RECORD, config)
    assert isinstance(parsed, AcpConfig)
    return parsed


def environment(profile: str, scratch: Path, selected: str | None = "m", **provider: Any) -> dict[str, str]:
    config = parse(profile=profile, **({"provider": {"baseUrl": URL, **provider}} if provider else {}))
    resolved = resolve_provider(config.provider.config(), {"A_KEY": KEY}) if config.provider else None
    wiring = Wiring(
        work_dir=scratch / "work",
        alone=True,
        model=selected,
        provider=resolved,
        settings=config.provider,
        scratch=scratch,
    )
    return config.known.environment(wiring)


def test_copilot(tmp_path: Path) -> None:
    told = environment(
        "copilot",
        tmp_path,
        type="azure",
        apiKeyEnv="A_KEY",
        apiVersion="v",
        model="wire",
        headers={"X-Team": "a", "X-B": "c"},
        maxPromptTokens=10,
    )
    assert told == {
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_TYPE": "azure",
        "COPILOT_PROVIDER_BASE_URL": URL,
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_PROVIDER_WIRE_API": "completions",
        "COPILOT_PROVIDER_AZURE_API_VERSION": "v",
        "COPILOT_PROVIDER_HEADERS": "X-Team: a\nX-B: c",
        "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "10",
        "COPILOT_PROVIDER_WIRE_MODEL": "wire",
        "COPILOT_MODEL": "m",
    }
    assert environment("copilot", tmp_path, None) == {"COPILOT_AUTO_UPDATE": "false"}


def test_claude(tmp_path: Path) -> None:
    told = environment("claude", tmp_path, type="anthropic", bearerTokenEnv="A_KEY", headers={"X-Team": "a"})
    assert told["ANTHROPIC_BASE_URL"] == URL
    assert told["ANTHROPIC_AUTH_TOKEN"] == KEY
    assert "ANTHROPIC_API_KEY" not in told
    assert told["ANTHROPIC_MODEL"] == told["ANTHROPIC_DEFAULT_HAIKU_MODEL"] == "m"
    assert told["ANTHROPIC_CUSTOM_HEADERS"] == "X-Team: a"
    assert environment("claude", tmp_path, type="anthropic")["ANTHROPIC_API_KEY"] == "unused"


@pytest.mark.parametrize(
    ("kind", "credential"),
    [("openai", {"env_key": "MODEL_PROVIDER_KEY"}), ("azure", {"env_http_headers": {"api-key": "MODEL_PROVIDER_KEY"}})],
)
def test_codex(tmp_path: Path, kind: str, credential: dict[str, Any]) -> None:
    told = environment("codex", tmp_path, type=kind, apiKeyEnv="A_KEY", apiVersion="v")
    config = json.loads(told["CODEX_CONFIG"])
    assert (config["model"], told["MODEL_PROVIDER_KEY"]) == ("m", KEY)
    assert config["model_providers"][told["MODEL_PROVIDER"]] == {
        "name": "custom",
        "base_url": URL,
        "wire_api": "responses",
        "query_params": {"api-version": "v"},
        **credential,
    }
    assert "MODEL_PROVIDER" not in environment("codex", tmp_path, None)


def test_gemini(tmp_path: Path) -> None:
    told = environment("gemini", tmp_path, type="gemini", apiKeyEnv="A_KEY")
    assert (told["GOOGLE_GEMINI_BASE_URL"], told["GEMINI_API_KEY"]) == (URL, KEY)
    settings = Path(told["GEMINI_CLI_SYSTEM_SETTINGS_PATH"])
    assert settings.parent == tmp_path
    assert json.loads(settings.read_text())["security"]["auth"]["selectedType"] == "gemini-api-key"
    assert KEY not in settings.read_text()


def test_opencode(tmp_path: Path) -> None:
    told = environment("opencode", tmp_path, type="openai", apiKeyEnv="A_KEY")
    config = json.loads(told["OPENCODE_CONFIG_CONTENT"])
    assert config["model"] == config["small_model"] == "custom/m"
    assert config["provider"]["custom"]["options"] == {"baseURL": URL, "apiKey": "{env:MODEL_PROVIDER_KEY}"}
    assert KEY not in told["OPENCODE_CONFIG_CONTENT"]
    assert config["instructions"] == []
    assert told["OPENCODE_DISABLE_PROJECT_CONFIG"] == "1"
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "AGENTS.md").touch()
    own = json.loads(environment("opencode", tmp_path, "anthropic/x")["OPENCODE_CONFIG_CONTENT"])
    assert own["model"] == "anthropic/x"
    assert own["instructions"] == [str(tmp_path / "work" / "AGENTS.md")]


OPENAI = {"type": "openai", "baseUrl": URL}
RULES = {"default": "deny"}


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({}, "'profile' or 'command' is required"),
        ({"command": []}, "'command' must be non-empty"),
        ({"profile": "claud"}, "'profile' must be 'copilot', 'claude', 'codex', 'gemini' or 'opencode'"),
        (
            {"command": ["a"], "provider": OPENAI},
            "'provider' needs a 'profile': how to tell another agent is not known; ",
        ),
        ({"profile": "claude", "provider": OPENAI}, "'provider.type' must be 'anthropic' with this profile"),
        (
            {"profile": "codex", "provider": {**OPENAI, "wireApi": "completions"}},
            "'provider.wireApi' must be 'responses' with this profile",
        ),
        (
            {"profile": "gemini", "provider": {**OPENAI, "type": "gemini", "headers": {"a": "b"}}},
            "'provider.headers' cannot be told to the agent of this profile",
        ),
        (
            {"profile": "codex", "provider": {**OPENAI, "maxOutputTokens": 1}},
            "'provider.maxPromptTokens' and 'maxOutputTokens' cannot be told to the agent of this profile",
        ),
        ({"profile": "codex", "permissions": RULES}, "'permissions' cannot be rules with this profile: "),
        ({"profile": "opencode", "sessionsPerAgent": 2}, "'sessionsPerAgent' must be 1 with this profile"),
        ({"command": ["a"], "skillsDir": "../x"}, "'skillsDir' must stay inside the workspace"),
        ({"command": ["a"], "env": {"VALLY_X": "y"}}, "'env' name 'VALLY_X' is reserved"),
        ({"command": ["a"], "initTimeout": "soon"}, "'initTimeout' must be a duration above zero such as 30s or 1m30s"),
        ({"command": ["a"], "sessionsPerAgent": 0}, "'sessionsPerAgent' must be at least 1"),
        ({"command": ["a"], "permission": "deny-all"}, "unknown key 'permission'"),
    ],
)
def test_what_is_wrong_is_named(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        parse(**config)
    assert caught.value.problems[0].startswith(problem)


def test_what_an_agent_can_be_told() -> None:
    executor = AcpExecutor()
    assert executor.capabilities_for(parse(profile="copilot")) == RECORD.capabilities
    plain = executor.capabilities_for(parse(command=["a"]))
    assert (plain.model, plain.skills, plain.mcp) == (False, False, True)
    assert executor.capabilities_for(parse(profile="claude")).skills
    assert not executor.capabilities_for(parse(profile="claude", sessionsPerAgent=2)).skills
    told = executor.capabilities_for(parse(command=["a"], env={"M": "{model}"}, skillsDir="x"))
    assert (told.model, told.skills) == (True, True)


def test_modes_follow_the_policy() -> None:
    assert parse(profile="codex").modes == ("full-access", "agent-full-access")
    assert parse(profile="codex", permissions="deny-all").modes == ("read-only",)
    assert parse(profile="codex", mode="agent").modes == ("agent",)


@pytest.mark.anyio
async def test_preflight_looks_for_the_program_where_the_run_does(tmp_path: Path) -> None:
    program = tmp_path / "node_modules" / "agent" / "bin" / "agent.js"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "my-agent").symlink_to(program)
    executor = AcpExecutor()
    executor.configure(run_context(tmp_path, process_env={"PATH": str(tmp_path / "bin")}))
    known = parse(command=["my-agent"])
    assert await executor.preflight(known) == str(tmp_path / "bin" / "my-agent")
    assert executor.host_paths(known) == [tmp_path / "bin", (tmp_path / "node_modules").resolve()]
    assert await executor.preflight(parse(command=["./mine"])) == "./mine, which is below the workspace"
    with pytest.raises(ExecutorError, match="the program 'sh' was not found on PATH"):
        await executor.preflight(parse(command=["sh"]))
    assert executor.host_paths(parse(command=["sh"])) == []


def test_every_profile_is_an_example() -> None:
    examples = AcpExecutor().example_configs()
    assert [parse(**config).profile for config in examples.values()] == list(examples)
