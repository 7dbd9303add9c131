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
_NO_KEY = "unused"
"""For agents that insist on a key although the endpoint wants none."""
_INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md")
_OPENCODE_ALONE = (
    "OPENCODE_DISABLE_PROJECT_CONFIG",
    "OPENCODE_DISABLE_EXTERNAL_SKILLS",
    "OPENCODE_DISABLE_CLAUDE_CODE",
)
_OPENCODE_OFFLINE = ("OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD")


class AgentProvider(ProviderSettings):
    """The provider shape with one more wire family, that of Gemini; its `baseUrl` is the address without a version."""

    # Wider than in the shape: agents speak more than the executors that ask models themselves.
    type: Literal["openai", "azure", "anthropic", "gemini"]  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What an agent is to be told: its model, and the endpoint with its credentials.

    `scratch` is for its files. `work_dir` is None for an agent that serves several trials. With `alone` it reads
    nothing of the user and of the directories above the workspace.
    """

    work_dir: Path | None
    alone: bool
    model: str | None
    provider: ProviderConfig | None
    settings: AgentProvider | None
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
SessionMeta = Callable[[Path], dict[str, Any]]


def _no_environment(_: Wiring) -> dict[str, str]:
    return {}


def _no_meta(_: Path) -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One agent.

    `environment` is what it is told by variables, `session_meta` what is told with a session beside the protocol.
    `modes` are session modes of which the first that the agent has is set, `asking_modes` those in which it asks for
    permission, for policies that do not allow everything; `asks` is whether it asks for every tool. `mcp_words` stand
    before the file of MCP servers for an agent that does not take them with a session. `skills_by_home`: the directory
    of skills is linked into the agent's home. `per_trial`: the agent is told things of the trial when it starts, so
    that it can serve no other. `wire_types` are the provider types it can be given, `headers` and `limits` whether it
    takes those of a provider. `gaps` are what a trajectory lacks with this agent, in words for its readers.
    """

    command: tuple[str, ...] = ()
    model_words: tuple[str, ...] = ()
    mcp_words: tuple[str, ...] = ()
    environment: Environment = _no_environment
    session_meta: SessionMeta = _no_meta
    modes: tuple[str, ...] = ()
    asking_modes: tuple[str, ...] = ()
    asks: bool = True
    skills_dir: str | None = None
    skills_by_home: bool = False
    per_trial: bool = False
    needs_model: bool = False
    wire_types: tuple[str, ...] = ()
    wire_api: Literal["completions", "responses"] | None = None
    headers: bool = False
    limits: bool = False
    gaps: tuple[str, ...] = ()

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
        "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1",
        "ANTHROPIC_MODEL": wiring.wire_model,
        "IS_SANDBOX": "1" if _is_root() else None,
    }
    provider = wiring.provider
    if provider is not None:
        told |= {
            "ANTHROPIC_BASE_URL": provider.base_url,
            "ANTHROPIC_API_KEY": provider.api_key or (_NO_KEY if provider.bearer_token is None else None),
            "ANTHROPIC_AUTH_TOKEN": provider.bearer_token,
            "ANTHROPIC_CUSTOM_HEADERS": _header_lines(provider.headers),
            # Titles and summaries are written by a smaller model, which the endpoint may not have.
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": wiring.wire_model,
        }
    return _present(told)


def _claude_session(work_dir: Path) -> dict[str, Any]:
    """Nothing of the directories above the workspace, which the agent would read too."""
    options = {"settingSources": ["user"], "additionalDirectories": [str(work_dir)], "strictMcpConfig": True}
    return {"claudeCode": {"options": options}}


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
    # Skills and MCP servers are for trusted workspaces only.
    told: dict[str, str | None] = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
    provider = wiring.provider
    if provider is not None:
        settings["security"] = {"auth": {"selectedType": "gemini-api-key"}}
        told |= {"GOOGLE_GEMINI_BASE_URL": provider.base_url, "GEMINI_API_KEY": wiring.key or _NO_KEY}
    path = wiring.scratch / "gemini-settings.json"
    path.write_text(json.dumps(settings), encoding="utf-8")
    return _present({**told, "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(path)})


def _opencode(wiring: Wiring) -> dict[str, str]:
    config: dict[str, Any] = {
        "autoupdate": False,
        "share": "disabled",
        # Its only use is a title, for one more request.
        "agent": {"title": {"disable": True}},
        # Every tool asks, so that the policy is heard; nobody answers questions.
        "permission": {**dict.fromkeys(("edit", "bash", "webfetch"), "ask"), "question": "deny"},
    }
    model, provider = wiring.wire_model, wiring.provider
    told: dict[str, str | None] = {"OPENCODE_DISABLE_AUTOUPDATE": "1"}
    if wiring.alone and wiring.work_dir is not None:
        told |= dict.fromkeys(_OPENCODE_ALONE, "1")
        config |= _opencode_workspace(wiring.work_dir)
    if provider is not None:
        told |= {KEY_VARIABLE: wiring.key, **dict.fromkeys(_OPENCODE_OFFLINE, "1")}
        config["provider"] = {_PROVIDER_NAME: _opencode_provider(provider, wiring)}
        model = f"{_PROVIDER_NAME}/{model}"
    if model is not None:
        config |= {"model": model, "small_model": model}
    return _present({**told, "OPENCODE_CONFIG_CONTENT": json.dumps(config)})


def _opencode_workspace(work_dir: Path) -> dict[str, Any]:
    """What it would find by itself, and above the workspace too."""
    found = next((work_dir / name for name in _INSTRUCTIONS if (work_dir / name).is_file()), None)
    skills = work_dir / ".opencode" / "skills"
    return {
        "instructions": [str(found)] if found else [],
        "skills": {"paths": [str(skills)] if skills.is_dir() else []},
    }


def _opencode_provider(provider: ProviderConfig, wiring: Wiring) -> dict[str, Any]:
    options: dict[str, Any] = {"baseURL": provider.base_url}
    headers = {**provider.headers, **({} if provider.bearer_token is None else provider_headers(provider))}
    if headers:
        options["headers"] = headers
    if wiring.key is not None:
        options["apiKey"] = f"{{env:{KEY_VARIABLE}}}"
    model = wiring.wire_model
    return {
        "npm": "@ai-sdk/openai-compatible",
        "name": _PROVIDER_NAME,
        "options": options,
        "models": {model: {"name": model}},
    }


PROFILES: Mapping[ProfileName, Profile] = MappingProxyType(
    {
        "copilot": Profile(
            command=("copilot", "--acp"),
            mcp_words=("--additional-mcp-config",),
            environment=_copilot,
            skills_dir=".github/skills",
            wire_types=("openai", "azure", "anthropic"),
            headers=True,
            limits=True,
            gaps=(
                "tools are named by their kind, not by their own name",
                "messages that start with 'Info: ' are taken for notices, a last one with 'Error: ' for a failure",
            ),
        ),
        "claude": Profile(
            command=("claude-agent-acp",),
            environment=_claude,
            session_meta=_claude_session,
            # The mode it starts in asks a further model instead of the policy.
            modes=("default",),
            asking_modes=("default",),
            skills_dir=".claude/skills",
            skills_by_home=True,
            wire_types=("anthropic",),
            headers=True,
            gaps=("the exit code of a command is known only when it failed",),
        ),
        "codex": Profile(
            command=("codex-acp",),
            environment=_codex,
            # It starts read-only. The names differ between versions.
            modes=("full-access", "agent-full-access"),
            asking_modes=("read-only",),
            asks=False,
            skills_dir=".agents/skills",
            wire_types=("openai", "azure"),
            wire_api="responses",
            headers=True,
            gaps=(
                "tools are named by their kind; commands that only read are told as reads, without the command",
                "the status of a refused model call is known only when it is 401",
            ),
        ),
        "gemini": Profile(
            command=("gemini", "--acp"),
            model_words=("-m",),
            environment=_gemini,
            skills_dir=".gemini/skills",
            needs_model=True,
            wire_types=("gemini",),
            gaps=(
                "tools are named by their kind, and their input is not told: arguments come from title and place",
                "commands that succeed have neither output nor exit code",
            ),
        ),
        "opencode": Profile(
            command=("opencode", "acp"),
            environment=_opencode,
            skills_dir=".opencode/skills",
            per_trial=True,
            wire_types=("openai",),
            wire_api="completions",
            headers=True,
            gaps=(
                "tools are named by their kind, not by their own name",
                "tokens are those of the last model call of a prompt",
                "the status of a refused model call is not known",
            ),
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
