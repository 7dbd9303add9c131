"""The config and what it makes of the capabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally import ConfigInvalid, ExecutorError
from vally.testing import MockLlm, plugin_host, run_context
from vally_executor_openai_tools import plugin
from vally_executor_openai_tools.executor import OpenAiToolsExecutor

(RECORD,) = plugin.vally_executors()
PROVIDER = {"type": "openai", "baseUrl": "http://127.0.0.1:9"}


def parse(**config: Any) -> Any:
    return plugin_host(RECORD).parse_config(RECORD, config)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({}, "'provider' is required"),
        ({"provider": {**PROVIDER, "type": "anthropic"}}, "'provider.type' must be 'openai' or 'azure'"),
        ({"provider": {**PROVIDER, "wireApi": "responses"}}, "'provider.wireApi' must be 'completions'"),
        ({"provider": {"type": "openai"}}, "'provider.baseUrl' is required"),
        ({"provider": PROVIDER, "maxSteps": 0}, "'maxSteps' must be greater than 0"),
        (
            {"provider": PROVIDER, "bashTimeout": "0s"},
            "'bashTimeout' must be a duration above zero such as 30s or 1m30s",
        ),
        ({"provider": PROVIDER, "max_steps": 1}, "unknown key 'max_steps'"),
        ({"provider": PROVIDER, "systemPrompt": {"content": ""}}, "'content' must not be empty"),
        (
            {"provider": {**PROVIDER, "apiKeyEnv": "A_KEY"}, "passEnv": ["A_KEY"]},
            "'passEnv' must not hold 'A_KEY', the credential of the model",
        ),
    ],
)
def test_what_is_wrong_is_named(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        parse(**config)
    assert caught.value.problems == (problem,)


def test_an_unknown_tool_is_named() -> None:
    with pytest.raises(ConfigInvalid, match=r"'tools\[1\]' must be 'bash', 'view'"):
        parse(provider=PROVIDER, tools=["bash", "shell"])


def test_tools_decide_what_it_can_do() -> None:
    executor = OpenAiToolsExecutor()
    assert executor.capabilities_for(parse(provider=PROVIDER)) == RECORD.capabilities
    without = executor.capabilities_for(parse(provider=PROVIDER, tools=["view"]))
    assert (without.skills, without.env) == (False, False)
    assert executor.tool_names(parse(provider=PROVIDER, tools=["view"])) == ["view"]


def test_the_limit_of_the_model_holds_unless_the_agent_has_its_own() -> None:
    limited = {**PROVIDER, "maxOutputTokens": 10}
    assert parse(provider=limited).output_tokens == 10
    assert parse(provider=limited, maxOutputTokens=5).output_tokens == 5


@pytest.mark.anyio
async def test_preflight_asks_the_endpoint(tmp_path: Path) -> None:
    executor = OpenAiToolsExecutor()
    executor.configure(run_context(tmp_path, process_env={"A_KEY": "the-right-key", "B_KEY": "another-key"}))
    with MockLlm(api_key="the-right-key") as model:
        there = {"type": "openai", "baseUrl": f"{model.url}/v1"}
        told = await executor.preflight(parse(provider={**there, "apiKeyEnv": "A_KEY"}))
        assert told == f"{model.url}/v1/models answers with HTTP 200"
    with pytest.raises(ExecutorError, match="/models: ") as caught:
        await executor.preflight(parse(provider=PROVIDER))
    assert caught.value.code == "executor-unavailable"
    with pytest.raises(ExecutorError, match="environment variable 'C_KEY' is not set"):
        await executor.preflight(parse(provider={**PROVIDER, "apiKeyEnv": "C_KEY"}))
    await executor.shutdown()
