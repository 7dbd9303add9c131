"""What the judge does before any runtime starts."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from judge_questions import request

from vally import JudgeError, ProviderConfig
from vally.testing import run_context
from vally_judge_copilot import plugin
from vally_judge_copilot.access import TOKEN_VARIABLES, Access
from vally_judge_copilot.judge import CopilotJudge
from vally_judge_copilot.session import decide

(RECORD,) = plugin.vally_judges()


def test_the_record() -> None:
    assert (RECORD.name, RECORD.provider_types, RECORD.supports_files) == ("copilot", (), True)


@pytest.mark.parametrize("first", range(len(TOKEN_VARIABLES)))
def test_the_order_of_tokens(first: int) -> None:
    assert TOKEN_VARIABLES == ("GITHUB_COPILOT_API_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "COPILOT_GITHUB_TOKEN")
    env = {name: f"token-of-{name}" for name in TOKEN_VARIABLES[first:]} | dict.fromkeys(TOKEN_VARIABLES[:first], " ")
    access = Access(None, env)
    assert access.arguments("m") == {"model": "m", "github_token": f"token-of-{TOKEN_VARIABLES[first]}"}
    assert access.secrets == (f"token-of-{TOKEN_VARIABLES[first]}",)
    assert not access.stored_login


def test_an_endpoint_needs_no_token() -> None:
    endpoint = ProviderConfig(type="anthropic", base_url="http://models.example", api_key="the-key", model="big")
    access = Access(endpoint, {"GH_TOKEN": "token-of-github"})
    assert access.arguments("m") == {
        "model": "m",
        "provider": {
            "type": "anthropic",
            "base_url": "http://models.example",
            "api_key": "the-key",
            "wire_model": "big",
        },
    }
    assert (access.secrets, access.stored_login, access.as_json) == (("the-key",), False, False)


def test_the_stored_login_is_the_last_resort() -> None:
    assert Access(None, {}).stored_login
    assert Access(None, {}).arguments("m") == {"model": "m"}


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        ({"kind": "read", "path": "a.txt"}, True),
        ({"kind": "read", "path": "{dir}/sub/a.txt"}, True),
        ({"kind": "read", "path": "{dir}"}, True),
        ({"kind": "read", "path": "{dir}/../x"}, False),
        ({"kind": "read", "path": "{dir}-2/x"}, False),
        ({"kind": "read", "path": "/etc/passwd"}, False),
        ({"kind": "read", "path": "a\0b"}, False),
        ({"kind": "read", "path": None}, False),
        ({"kind": "read"}, False),
        ({"kind": "write", "path": "a.txt", "fileName": "a.txt"}, False),
        ({"kind": "shell", "fullCommandText": "ls"}, False),
        ({"kind": "url", "url": "http://localhost"}, False),
        ({"kind": "mcp", "toolName": "x"}, False),
        ({"kind": "custom-tool", "toolName": "x"}, False),
        ({"kind": "one-that-nobody-knows", "path": "a.txt"}, False),
        ({}, False),
    ],
)
def test_permissions(tmp_path: Path, asked: dict[str, str | None], allowed: bool) -> None:
    told = {key: value.format(dir=tmp_path) if isinstance(value, str) else value for key, value in asked.items()}
    assert decide(told, tmp_path).allowed is allowed


def test_links_out_of_the_evidence_are_not_followed(tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    (evidence / "link").symlink_to(tmp_path)
    assert not decide({"kind": "read", "path": str(evidence / "link" / "x")}, evidence).allowed


def test_without_a_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = CopilotJudge()
    env = {"HOME": str(tmp_path), "PATH": str(tmp_path), "COPILOT_SKIP_CLI_DOWNLOAD": "1"}
    judge.prepare(run_context(tmp_path, process_env=env))
    judge.configure(None)
    with pytest.raises(JudgeError, match="no Copilot runtime was found; run 'python -m") as caught:
        anyio.run(judge.judge, request())
    assert caught.value.kind == "unavailable"
    assert "\n" not in caught.value.message


def test_it_needs_to_know_the_run() -> None:
    with pytest.raises(JudgeError, match="not told of the run"):
        CopilotJudge().configure(None)
    with pytest.raises(JudgeError, match="not configured"):
        anyio.run(CopilotJudge().judge, request())
