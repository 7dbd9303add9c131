"""What is known of five agents: how they are started, told their model and its endpoint, and what they lack."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from vally import ProviderConfig, ProviderSettings, provider_headers

ProfileName = Literal["copilot", "claude", "codex", "gemini", "opencode"]
KEY_VARIABLE = "MODEL_PROVIDER_KEY"
_PROVIDER_NAME = "custom"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What an agent is to be told: its model, and the endpoint with its credentials. `scratch` is for its files."""

    model: str | None
    provider: ProviderConfig | None
    settings: ProviderSettings | None
    scratch: Path

    @property
    def wire_model(self) -> str | None:
        """The name by which the endpoint knows the model."""
        return (self.provider.model if self.provider is not None else None) or self.model

    @property
    def key(self) -> str | None:
        """Key or token of the endpoint."""
        return None if self.provider is None else self.provider.api_key or self.provider.bearer_token


Environment = Callable[[Wiring], dict[str, str]]


def _no_environment(_: Wiring) -> dict[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One agent.

    `modes` are session modes of which the first that the agent has is set. `wire_types` are the provider types it can
    be given, `headers` and `limits` whether it takes those of a provider.
    """

    command: tuple[str, ...] = ()
    model_words: tuple[str, ...] = ()
    environment: Environment = _no_environment
    modes: tuple[str, ...] = ()
    skills_dir: str | None = None
    needs_model: bool = False
    wire_types: tuple[str, ...] = ()
    wire_api: Literal["completions", "responses"] | None = None
    headers: bool = False
    limits: bool = False

    def provider_problem(self, provider: ProviderSettings) -> str | None:
        """Why this agent cannot be given an endpoint; None when it can."""
        if provider.type not in self.wire_types:
            return f"'provider.type' must be {' or '.join(map(repr, self.wire_types))} with this profile"
        if self.wire_api is not None and "wire_api" in provider.model_fields_set and provider.wire_api != self.wire_api:
            return f"'provider.wireApi' must be '{self.wire_api}' with this profile"
        if provider.headers and not self.headers:
            return "'provider.headers' cannot be told to the agent of this profile"
        if not self.limits and (provider.max_prompt_tokens or provider.max_output_tokens):
            return "'provider.maxPromptTokens' and 'maxOutputTokens' cannot be told to the agent of this profile"
        return None


def _copilot(wiring: Wiring) -> dict[str, str]:
    told: dict[str, str | None] = {"COPILOT_AUTO_UPDATE": "false"}
    provider, settings = wiring.provider, wiring.settings
    if provider is not None and settings is not None:
        told |= {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_TYPE": provider.type,
            "COPILOT_PROVIDER_BASE_URL": provider.base_url,
            "COPILOT_PROVIDER_API_KEY": provider.api_key,
            "COPILOT_PROVIDER_BEARER_TOKEN": provider.bearer_token,
            "COPILOT_PROVIDER_WIRE_API": provider.wire_api,
            "COPILOT_PROVIDER_AZURE_API_VERSION": provider.api_version,
            "COPILOT_PROVIDER_HEADERS": _header_lines(provider.headers),
            "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": _number(settings.max_prompt_tokens),
            "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": _number(settings.max_output_tokens),
            "COPILOT_PROVIDER_WIRE_MODEL": provider.model,
        }
    # With an endpoint of one's own the agent insists on a model here.
    return _present({**told, "COPILOT_MODEL": wiring.model or wiring.wire_model})


def _claude(wiring: Wiring) -> dict[str, str]:
    told: dict[str, str | None] = {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "ANTHROPIC_MODEL": wiring.wire_model,
        "IS_SANDBOX": "1" if _is_root() else None,
    }
    provider = wiring.provider
    if provider is not None:
        told |= {
            "ANTHROPIC_BASE_URL": provider.base_url,
            "ANTHROPIC_API_KEY": provider.api_key,
            "ANTHROPIC_AUTH_TOKEN": provider.bearer_token,
            "ANTHROPIC_CUSTOM_HEADERS": _header_lines(provider.headers),
            # Titles and summaries are written by a smaller model, which the endpoint may not have.
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": wiring.wire_model,
        }
    return _present(told)


def _codex(wiring: Wiring) -> dict[str, str]:
    config: dict[str, Any] = {"check_for_update_on_startup": False}
    told: dict[str, str | None] = {"NO_BROWSER": "1"}
    if wiring.wire_model is not None:
        config["model"] = wiring.wire_model
    provider = wiring.provider
    if provider is not None:
        endpoint: dict[str, Any] = {"name": _PROVIDER_NAME, "base_url": provider.base_url, "wire_api": "responses"}
        if provider.type == "azure" and provider.api_key is not None:
            endpoint["env_http_headers"] = {"api-key": KEY_VARIABLE}
        elif wiring.key is not None:
            endpoint["env_key"] = KEY_VARIABLE
        if provider.headers:
            endpoint["http_headers"] = dict(provider.headers)
        if provider.api_version is not None:
            endpoint["query_params"] = {"api-version": provider.api_version}
        config |= {"model_provider": _PROVIDER_NAME, "model_providers": {_PROVIDER_NAME: endpoint}}
        told |= {"MODEL_PROVIDER": _PROVIDER_NAME, KEY_VARIABLE: wiring.key}
    return _present({**told, "CODEX_CONFIG": json.dumps(config)})


def _gemini(wiring: Wiring) -> dict[str, str]:
    settings: dict[str, Any] = {
        "general": {"disableAutoUpdate": True, "disableUpdateNag": True},
        "privacy": {"usageStatisticsEnabled": False},
    }
    told: dict[str, str | None] = {}
    provider = wiring.provider
    if provider is not None:
        settings["security"] = {"auth": {"selectedType": "gemini-api-key"}}
        told = {"GOOGLE_GEMINI_BASE_URL": provider.base_url, "GEMINI_API_KEY": wiring.key or "unused"}
    path = wiring.scratch / "gemini-settings.json"
    path.write_text(json.dumps(settings), encoding="utf-8")
    return _present({**told, "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(path)})


def _opencode(wiring: Wiring) -> dict[str, str]:
    # Every tool asks, so that the policy is heard.
    asks = dict.fromkeys(("edit", "bash", "webfetch"), "ask")
    config: dict[str, Any] = {"autoupdate": False, "share": "disabled", "permission": asks}
    model, provider = wiring.wire_model, wiring.provider
    told: dict[str, str | None] = {"OPENCODE_DISABLE_AUTOUPDATE": "1"}
    if provider is not None:
        options: dict[str, Any] = {"baseURL": provider.base_url}
        headers = {**provider.headers, **({} if provider.bearer_token is None else provider_headers(provider))}
        if headers:
            options["headers"] = headers
        if wiring.key is not None:
            options["apiKey"] = f"{{env:{KEY_VARIABLE}}}"
        endpoint = {"npm": "@ai-sdk/openai-compatible", "name": _PROVIDER_NAME, "options": options}
        config["provider"] = {_PROVIDER_NAME: {**endpoint, "models": {model: {"name": model}}}}
        model = f"{_PROVIDER_NAME}/{model}"
        told[KEY_VARIABLE] = wiring.key
    if model is not None:
        config |= {"model": model, "small_model": model}
    return _present({**told, "OPENCODE_CONFIG_CONTENT": json.dumps(config)})


PROFILES: Mapping[ProfileName, Profile] = MappingProxyType(
    {
        "copilot": Profile(
            command=("copilot", "--acp"),
            environment=_copilot,
            skills_dir=".github/skills",
            wire_types=("openai", "azure", "anthropic"),
            headers=True,
            limits=True,
        ),
        "claude": Profile(
            command=("claude-agent-acp",),
            environment=_claude,
            # The mode it starts in asks a further model instead of the policy.
            modes=("default",),
            skills_dir=".claude/skills",
            wire_types=("anthropic",),
            headers=True,
        ),
        "codex": Profile(
            command=("codex-acp",),
            environment=_codex,
            # It starts read-only. The names differ between versions.
            modes=("full-access", "agent-full-access"),
            skills_dir=".agents/skills",
            wire_types=("openai", "azure"),
            wire_api="responses",
            headers=True,
        ),
        "gemini": Profile(
            command=("gemini", "--acp"),
            model_words=("-m",),
            environment=_gemini,
            skills_dir=".gemini/skills",
            needs_model=True,
            wire_types=("openai", "azure", "anthropic"),
        ),
        "opencode": Profile(
            command=("opencode", "acp"),
            environment=_opencode,
            skills_dir=".opencode/skills",
            wire_types=("openai",),
            wire_api="completions",
            headers=True,
        ),
    }
)


def _header_lines(headers: Mapping[str, str]) -> str | None:
    return "\n".join(f"{name}: {value}" for name, value in headers.items()) or None


def _number(value: int | None) -> str | None:
    return None if value is None else str(value)


def _present(told: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in told.items() if value is not None}


def _is_root() -> bool:
    if sys.platform == "win32":
        return False
    import os

    return os.geteuid() == 0
