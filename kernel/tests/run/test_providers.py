"""Endpoints of models: their secrets come from the environment and are shown nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from vally import (
    ProviderConfig,
    VallyError,
    outgoing_headers,
    provider_headers,
    provider_secrets,
    resolve_provider,
)


def provider(**fields: Any) -> ProviderConfig:
    return ProviderConfig(**{"type": "fake", "base_url": "http://127.0.0.1/v1", **fields})


ENVIRON = {"KEY": " the-api-key \n", "TOKEN": "the-token", "EMPTY": " "}


def test_credentials_are_the_values_of_their_variables() -> None:
    resolved = resolve_provider(provider(api_key_env="KEY", bearer_token_env="TOKEN"), ENVIRON)
    assert (resolved.api_key, resolved.bearer_token) == ("the-api-key", "the-token")
    assert resolve_provider(provider(), ENVIRON) == provider()


@pytest.mark.parametrize(("key", "field"), [("apiKeyEnv", "api_key_env"), ("bearerTokenEnv", "bearer_token_env")])
@pytest.mark.parametrize("name", ["MISSING", "EMPTY"])
def test_a_variable_that_is_not_set_is_named(key: str, field: str, name: str) -> None:
    with pytest.raises(VallyError) as caught:
        resolve_provider(provider(**{field: name}), ENVIRON)
    assert (caught.value.where, caught.value.message) == (key, f"environment variable '{name}' is not set")
    assert caught.value.hints


def test_secrets_are_not_in_the_text_of_a_provider() -> None:
    resolved = resolve_provider(
        provider(api_key_env="KEY", bearer_token_env="TOKEN", headers={"x-team": "header-secret", "x": "short"}),
        ENVIRON,
    )
    assert set(provider_secrets(resolved)) == {"the-api-key", "the-token", "header-secret"}
    for secret in provider_secrets(resolved):
        assert secret not in f"{resolved!r} {resolved}"


def test_only_own_headers_leave() -> None:
    sent = {
        "Host": "127.0.0.1",
        "Content-Type": "application/json",
        "User-Agent": "library",
        "Authorization": "Bearer found-somewhere",
        "X-Organization": "found-somewhere",
        "X-Runtime": "telemetry",
    }
    assert outgoing_headers(sent, {"Authorization": "Bearer own", "user-agent": "own"}) == {
        "Host": "127.0.0.1",
        "Content-Type": "application/json",
        "authorization": "Bearer own",
        "user-agent": "own",
    }


@pytest.mark.parametrize(
    ("kind", "credential", "header"),
    [
        ("openai", "api_key", ("authorization", "Bearer it")),
        ("azure", "api_key", ("api-key", "it")),
        ("anthropic", "api_key", ("x-api-key", "it")),
        ("openai", "bearer_token", ("authorization", "Bearer it")),
        ("azure", "bearer_token", ("authorization", "Bearer it")),
        ("anthropic", "bearer_token", ("authorization", "Bearer it")),
    ],
)
def test_a_credential_goes_into_the_header_of_its_family(kind: str, credential: str, header: tuple[str, str]) -> None:
    assert provider_headers(provider(type=kind, **{credential: "it"}, headers={"X-Team": "a"})) == {
        header[0]: header[1],
        "x-team": "a",
    }


def test_written_headers_win() -> None:
    assert provider_headers(provider(api_key="it", headers={"Authorization": "own"})) == {"authorization": "own"}
