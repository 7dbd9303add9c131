"""Config, the choice of a provider, permissions, and what errors mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally import ConfigInvalid, ExecutorError, ProviderSettings
from vally.testing import executor_options, plugin_host
from vally_executor_copilot_sdk import plugin
from vally_executor_copilot_sdk.arguments import session_arguments
from vally_executor_copilot_sdk.config import CopilotConfig
from vally_executor_copilot_sdk.environment import copilot_settings, host_copilot_home, is_withheld
from vally_executor_copilot_sdk.failures import (
    crash,
    end_reason_of_answer,
    end_reason_of_error,
    infrastructure_error,
    start_failure,
)
from vally_executor_copilot_sdk.permissions import PermissionRules, Permissions, subject_of
from vally_executor_copilot_sdk.provider import ModelAccess, model_access, sdk_provider

(RECORD,) = plugin.vally_executors()


@pytest.mark.parametrize(
    ("mapping", "problem"),
    [
        ({"provider": {"type": "openai"}}, "baseUrl"),
        ({"permissions": "all"}, "permissions"),
        ({"permissions": {"default": "allow", "rules": [{"kind": "shel", "decision": "deny"}]}}, "kind"),
        (
            {"permissions": {"default": "allow", "rules": [{"kind": "shell", "match": "(", "decision": "deny"}]}},
            "Invalid regex",
        ),
        ({"permissions": {"rules": []}}, "default"),
        ({"sessionsPerClient": 0}, "sessionsPerClient"),
        ({"sessionsPerClient": 33}, "sessionsPerClient"),
        ({"clients": "one"}, "clients"),
        ({"customInstructions": "all"}, "customInstructions"),
        ({"systemMessage": "be nice"}, "systemMessage"),
        ({"systemMessage": {"mode": "prepend", "content": ""}}, "mode"),
        ({"largeOutputBytes": -1}, "largeOutputBytes"),
        ({"cliPath": 5}, "cliPath"),
        ({"agents": "x"}, "unknown key 'agents'"),
        ({"apiKey": "x"}, "unknown key 'apiKey'"),
    ],
    ids=str,
)
def test_invalid_configs(mapping: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        plugin_host(RECORD).parse_config(RECORD, mapping)
    assert problem in " ".join(caught.value.problems)


def test_a_runtime_that_is_not_there(tmp_path: Path) -> None:
    host = plugin_host(RECORD)
    with pytest.raises(ConfigInvalid, match="does not exist"):
        host.parse_config(RECORD, {"cliPath": "gone"}, spec_dir=tmp_path)
    (tmp_path / "copilot").touch()
    assert host.parse_config(RECORD, {"cliPath": "copilot"}, spec_dir=tmp_path).cli_path == tmp_path / "copilot"


def settings(**keys: Any) -> ProviderSettings:
    return ProviderSettings.model_validate({"type": "openai", "baseUrl": "http://h/v1", **keys}, by_alias=True)


def test_providers_in_the_words_of_the_sdk() -> None:
    env = {"K": "key", "T": "token"}
    assert sdk_provider(settings(apiKeyEnv="K"), "m", env) == {
        "type": "openai",
        "base_url": "http://h/v1",
        "api_key": "key",
        "wire_api": "completions",
    }
    azure = settings(
        type="azure", apiVersion="2026", bearerTokenEnv="T", wireApi="responses", model="m", headers={"a": "b"}
    )
    assert sdk_provider(azure, "m", env) == {
        "type": "azure",
        "base_url": "http://h/v1",
        "bearer_token": "token",
        "wire_api": "responses",
        "azure": {"api_version": "2026"},
        "headers": {"a": "b"},
    }
    anthropic = settings(type="anthropic", model="wire", maxPromptTokens=5, maxOutputTokens=6)
    assert sdk_provider(anthropic, "selected", {}) == {
        "type": "anthropic",
        "base_url": "http://h",
        "wire_model": "wire",
        "max_prompt_tokens": 5,
        "max_output_tokens": 6,
    }
    with pytest.raises(ExecutorError, match=r"provider\.apiKeyEnv: environment variable 'K' is not set"):
        sdk_provider(settings(apiKeyEnv="K"), "m", {})


@pytest.mark.parametrize(
    ("env", "token"),
    [
        ({"COPILOT_GITHUB_TOKEN": "a", "GH_TOKEN": "b", "GITHUB_TOKEN": "c"}, "a"),
        ({"GH_TOKEN": "b", "GITHUB_TOKEN": "c"}, "b"),
        ({"COPILOT_GITHUB_TOKEN": " ", "GITHUB_TOKEN": "c"}, "c"),
        ({"GITHUB_COPILOT_API_TOKEN": "judge"}, None),
    ],
)
def test_the_order_of_tokens(tmp_path: Path, env: dict[str, str], token: str | None) -> None:
    access = model_access(None, executor_options(tmp_path, process_env=env, model="m"))
    assert (access.github_token, access.provider, access.model) == (token, None, "m")
    assert access.stored_login is (token is None)
    assert (
        "a" not in repr(ModelAccess(model=None, github_token="aaaa")).replace("access", "").replace("ModelA", "")[-6:]
    )


def test_token_and_provider_exclude_each_other(tmp_path: Path) -> None:
    options = executor_options(tmp_path, process_env={"GH_TOKEN": "b"}, model="m")
    access = model_access(settings(), options)
    assert access.github_token is None
    assert access.provider is not None


def arguments(tmp_path: Path, mapping: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    config = CopilotConfig.model_validate(mapping or {}, by_alias=True)
    return session_arguments(config, executor_options(tmp_path, **fields), ModelAccess(model="m"), tmp_path / "home")


def test_arguments_of_a_plain_session(tmp_path: Path) -> None:
    told = arguments(tmp_path, trial_id="00000000-0000-4000-8000-000000000000")
    handler = told.pop("on_permission_request")
    assert callable(handler)
    assert told == {
        "session_id": "00000000-0000-4000-8000-000000000000",
        "working_directory": str(tmp_path / "work"),
        "model": "m",
        "included_builtin_skills": [],
        "enable_config_discovery": False,
        "skip_custom_instructions": False,
        "large_output": {"enabled": True, "output_directory": str(tmp_path / "trial" / "large-output")},
        "streaming": False,
        "trust_working_directory": "session",
        "enable_session_telemetry": False,
        "enable_session_store": False,
        "memory": {"enabled": False},
    }


def test_what_cannot_be_told_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExecutorError, match="'system_message' of the session holds text that is not Unicode"):
        arguments(tmp_path, {"systemMessage": {"mode": "append", "content": "half \ud800"}})


def test_agents_of_the_workspace_are_offered(tmp_path: Path) -> None:
    (tmp_path / "work" / ".github" / "agents").mkdir(parents=True)
    told = arguments(tmp_path, {"agent": "a", "largeOutputBytes": 7, "askUser": []}, reasoning_effort="high")
    assert told["agent_directories"] == [str(tmp_path / "work" / ".github" / "agents")]
    assert (told["agent"], told["reasoning_effort"]) == ("a", "high")
    assert told["large_output"]["max_size_bytes"] == 7
    assert told["on_user_input_request"]({"choices": ["x"]}, {}) == {"answer": "", "wasFreeform": True}


def test_the_last_answer_repeats(tmp_path: Path) -> None:
    answers = arguments(tmp_path, {"askUser": ["a", "b"]})["on_user_input_request"]
    given = [answers({"choices": ["a"]}, {}) for _ in range(3)]
    assert [item["answer"] for item in given] == ["a", "b", "b"]
    assert [item["wasFreeform"] for item in given] == [False, True, True]


@pytest.mark.parametrize(
    ("request_", "allowed"),
    [
        ({"kind": "write", "fileName": "a.txt"}, True),
        ({"kind": "write", "fileName": "/etc/passwd"}, False),
        ({"kind": "write", "fileName": "../a"}, False),
        ({"kind": "write", "fileName": "link/a"}, False),
        ({"kind": "read", "path": "{root}/x"}, True),
        ({"kind": "read", "path": "a\0b"}, False),
        ({"kind": "read"}, True),
        ({"kind": "url", "url": "http://x"}, False),
        ({"kind": "shell", "fullCommandText": "rm -rf /"}, True),
        ({"kind": "mcp", "serverName": "s", "toolName": "t"}, True),
    ],
)
def test_the_policy_workspace(tmp_path: Path, request_: dict[str, Any], allowed: bool) -> None:
    work, root = tmp_path / "work", tmp_path / "root"
    work.mkdir()
    root.mkdir()
    (work / "link").symlink_to("/etc")
    asked = {key: value.replace("{root}", str(root)) for key, value in request_.items()}
    assert Permissions("workspace", work, [root]).decide(asked).allowed is allowed


def test_rules_are_tried_in_order(tmp_path: Path) -> None:
    rules = PermissionRules.model_validate(
        {
            "default": "deny",
            "rules": [
                {"kind": "mcp", "match": "^calc-sub$", "decision": "deny", "feedback": "no"},
                {"kind": "mcp", "match": "^calc-", "decision": "allow"},
                {"kind": "shell", "match": "^(a+)+$", "decision": "allow"},
                {"kind": "url", "decision": "allow"},
            ],
        }
    )
    permissions = Permissions(rules, tmp_path)
    asked = [
        {"kind": "mcp", "serverName": "calc", "toolName": "add"},
        {"kind": "mcp", "serverName": "calc", "toolName": "sub"},
        {"kind": "url", "url": "http://x"},
        {"kind": "custom-tool", "toolName": "x"},
        {"kind": "of the future"},
    ]
    assert [permissions.decide(item).allowed for item in asked] == [True, False, True, False, False]
    assert permissions.decide(asked[1]).feedback == "no"


def test_what_a_request_is_about() -> None:
    assert subject_of({"kind": "custom-tool", "toolName": "t"}) == "t"
    assert subject_of({"kind": "memory", "fact": "f"}) == "f"
    assert subject_of({"kind": "shell"}) == ""


@pytest.mark.parametrize(
    ("name", "withheld"),
    [
        ("GH_TOKEN", True), ("GITHUB_TOKEN", True), ("COPILOT_GITHUB_TOKEN", True), ("GITHUB_COPILOT_API_TOKEN", True),
        ("COPILOT_SDK_AUTH_TOKEN", True), ("COPILOT_CLI_PATH", True), ("COPILOT_CUSTOM_INSTRUCTIONS_DIRS", True),
        ("COPILOT_HOME", True), ("NPM_TOKEN", False), ("PATH", False), ("COPILOT_MODEL", False),
    ],
)  # fmt: skip
def test_variables_that_the_runtime_must_not_see(name: str, withheld: bool) -> None:
    assert is_withheld(name) is withheld
    host = withheld and name != "COPILOT_CUSTOM_INSTRUCTIONS_DIRS"
    assert is_withheld(name, host_home=True) is host


def test_the_users_own_home(tmp_path: Path) -> None:
    assert host_copilot_home({"HOME": "/h"}) is None
    assert host_copilot_home({"HOME": "/h", "EVALUATE_USE_HOST_COPILOT_HOME": "1"}) == Path("/h/.copilot")
    named = {"COPILOT_HOME": "/c", "EVALUATE_USE_HOST_COPILOT_HOME": "1"}
    assert host_copilot_home(named) == Path("/c")


def test_settings_of_a_fresh_home() -> None:
    env = {"COPILOT_HOME_SETTINGS_JSON": '{"a": 1}'}
    assert copilot_settings(None, {}) is None
    assert copilot_settings(None, env) == {"a": 1}
    assert copilot_settings({"b": 2}, env) == {"b": 2}
    with pytest.raises(ExecutorError, match="is not JSON"):
        copilot_settings(None, {"COPILOT_HOME_SETTINGS_JSON": "{"})


@pytest.mark.parametrize(
    ("data", "transport", "acted", "code", "retryable"),
    [
        ({"errorType": "authentication"}, False, True, "provider-auth", False),
        ({"errorType": "authorization"}, False, True, "provider-auth", False),
        ({"errorType": "rate_limit"}, False, True, "provider-rate-limit", True),
        ({"errorType": "query", "statusCode": 503}, False, True, "provider-error", True),
        ({"errorType": "query", "statusCode": 408}, False, True, "provider-error", True),
        ({"errorType": "query", "statusCode": 400}, False, False, "provider-error", False),
        ({"errorType": "query", "statusCode": 400}, False, True, None, None),
        ({"errorType": "query"}, True, True, "provider-error", True),
        ({"errorType": "query"}, False, False, None, None),
        (
            {"message": "Failed to get response from the AI model; retried 5 times. Last error: upstream says no"},
            *(False, True, "provider-error", True),
        ),
    ],
)
def test_what_errors_of_a_session_mean(
    data: dict[str, Any], transport: bool, acted: bool, code: str | None, retryable: bool | None
) -> None:
    error = infrastructure_error({"message": "m", **data}, transport=transport, acted=acted)
    assert (error and error.code, error and error.retryable) == (code, retryable)


def test_a_wait_that_the_provider_told() -> None:
    error = infrastructure_error({"errorType": "rate_limit", "retryAfterSeconds": 1.5}, transport=False, acted=False)
    assert error is not None
    assert error.retry_after_ms == 1500


def test_how_a_session_ended() -> None:
    assert [end_reason_of_answer(reason) for reason in ("stop", None, "length", "max_tokens", "content_filter")] == [
        "completed",
        "completed",
        "budget",
        "budget",
        "refused",
    ]
    kinds = ("query", "context_limit", "content_filter")
    assert [end_reason_of_error({"errorType": kind}) for kind in kinds] == ["error", "budget", "refused"]


def test_errors_of_the_process() -> None:
    ended = crash(Exception("CLI process exited with code -9\nstderr: " + "x" * 5000 + "end"), -9)
    assert ended.message == "the Copilot runtime exited with code -9"
    assert ended.details is not None
    assert len(str(ended.details["stderr"])) == 4096
    assert crash(Exception(""), None).message == "the Copilot runtime ended"
    for told in ("CLI process exited with code None", "CLI process exited unexpectedly"):
        assert crash(Exception(told), None).message == "the Copilot runtime exited"
        assert crash(Exception(told), -9).message == "the Copilot runtime exited with code -9"
        failure = start_failure(RuntimeError(told))
        assert failure.message == "the Copilot runtime did not start: CLI process exited"
    with_stderr = crash(Exception("CLI process exited with code None\nstderr: exited unexpectedly"), 3)
    assert with_stderr.message == "the Copilot runtime exited with code 3"
    assert with_stderr.details == {"stderr": "exited unexpectedly"}
    old = start_failure(RuntimeError("SDK protocol version mismatch: SDK supports versions 2-3, but server reports 1"))
    assert (old.code, old.retryable) == ("executor-unavailable", False)
    assert start_failure(TimeoutError()).message == "the Copilot runtime did not start: TimeoutError"
