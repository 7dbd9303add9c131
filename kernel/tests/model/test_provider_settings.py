"""The provider shape in executor configs."""

from __future__ import annotations

from typing import Any

import pytest

from vally import ConfigInvalid, ExecutorSpec, ProviderConfig, ProviderSettings
from vally.testing import plugin_host

RECORD = ExecutorSpec(name="endpoint", summary="has nothing but a provider", factory="x:y", config=ProviderSettings)
SMALLEST = {"type": "openai", "baseUrl": "http://127.0.0.1:1/v1"}


def parse(values: dict[str, Any]) -> ProviderSettings:
    parsed = plugin_host(RECORD).parse_config(RECORD, values)
    assert isinstance(parsed, ProviderSettings)
    return parsed


def test_every_key_is_read() -> None:
    settings = parse(
        {
            **SMALLEST,
            "type": "azure",
            "apiKeyEnv": "A_KEY",
            "apiVersion": "2026-01-01",
            "model": "on-the-wire",
            "headers": {"x-team": "a"},
            "wireApi": "responses",
            "maxPromptTokens": 1000,
            "maxOutputTokens": 10,
        }
    )
    assert settings.config() == ProviderConfig(
        type="azure",
        base_url="http://127.0.0.1:1/v1",
        api_key_env="A_KEY",
        api_version="2026-01-01",
        model="on-the-wire",
        headers={"x-team": "a"},
        wire_api="responses",
    )
    assert (settings.max_prompt_tokens, settings.max_output_tokens) == (1000, 10)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"type": None}, "'type' must be 'openai', 'azure' or 'anthropic'"),
        ({"type": "opnai"}, "'type' must be 'openai', 'azure' or 'anthropic'"),
        ({"baseUrl": "127.0.0.1:1"}, "'baseUrl' must be an http or https URL"),
        ({"baseUrl": "http://[::1"}, "'baseUrl' must be an http or https URL"),
        ({"baseUrl": "http://127.0.0.1:99999"}, "'baseUrl' must be an http or https URL"),
        ({"baseUrl": "http://127.0.0.1:port"}, "'baseUrl' must be an http or https URL"),
        ({"baseUrl": "https://me:pw@host/v1"}, "'baseUrl' must not hold credentials; use apiKeyEnv or bearerTokenEnv"),
        ({"apiKeyEnv": "A-KEY"}, "'apiKeyEnv' must be text that matches ^[A-Za-z_][A-Za-z0-9_]*$"),
        ({"apiKeyEnv": "A", "bearerTokenEnv": "B"}, "only one of 'apiKeyEnv' and 'bearerTokenEnv' can be set"),
        ({"maxOutputTokens": 0}, "'maxOutputTokens' must be greater than 0"),
        ({"apiVersion": ""}, "'apiVersion' must not be empty"),
        ({"answer": "tool"}, "unknown key 'answer'"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        parse({**SMALLEST, **changes})
    assert caught.value.problems == (problem,)


def test_the_version_at_the_end_of_an_anthropic_endpoint_is_removed_with_a_notice() -> None:
    settings = parse({"type": "anthropic", "baseUrl": "http://127.0.0.1:1/v1/"})
    assert settings.config().base_url == "http://127.0.0.1:1"
    assert settings.notice == "provider.baseUrl: '/v1' at its end is ignored; write 'http://127.0.0.1:1'"
    assert parse({**SMALLEST, "baseUrl": "http://127.0.0.1:1/v1/"}).notice is None


def test_header_values_are_not_shown() -> None:
    assert "a-secret" not in repr(parse({**SMALLEST, "headers": {"x-secret": "a-secret"}}))
