"""GitHub Copilot CLI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from vally import ExecutorError
from vally_executor_command.profiles.profile import Additions, Profile, Trial, header_lines, refuse_above

# What it takes up of every directory above a workspace that is no repository.
_ABOVE = (
    ".github/skills/*",
    ".github/agents/*",
    ".claude/skills/*",
    ".claude/agents/*",
    ".claude/commands/*",
    ".agents/skills/*",
)


class Copilot(Profile):
    """The Copilot CLI takes its settings from `~/.copilot`, which is the trial's own."""

    name = "copilot"
    package = "@github/copilot"
    command = (
        "copilot",
        ("--prompt={prompt}",),
        "--allow-all-tools",
        "--allow-all-paths",
        "--no-ask-user",
        "--output-format",
        "json",
        "--usage-output-file",
        "{usage_file}",
        ("--model", "{model}"),
        ("--reasoning-effort", "{reasoning_effort}"),
        ("--additional-mcp-config", "@{mcp_config}"),
        "--session-id={session_id}",
    )
    continue_command = (*command[:-1], "--resume={session_id}")
    skills_dir = ".github/skills"
    families: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "openai": ("completions", "responses"),
        "azure": ("completions", "responses"),
        "anthropic": (),
    }
    limits = frozenset({"maxPromptTokens", "maxOutputTokens"})
    gaps = ("with a provider the agent has no web tools", "usage is told once per turn, not per call")

    def model_argument(self, trial: Trial) -> str:
        """The model whose name on the wire may be another."""
        return trial.model or trial.wire_model or ""

    def add(self, trial: Trial) -> Additions:
        """Everything by the environment."""
        if trial.home is not None and not (trial.work_dir / ".git").exists():
            refuse_above(self, trial.work_dir, _ABOVE)
        env = {"COPILOT_AUTO_UPDATE": "false", **_unpacked(trial)}
        if trial.provider is not None:
            env |= _provider(self, trial)
        return Additions(env=env)


def _provider(profile: Profile, trial: Trial) -> dict[str, str]:
    provider, limits = trial.provider, trial.limits
    assert provider is not None
    assert limits is not None
    model = trial.model or provider.model
    if model is None:
        raise ExecutorError("profile 'copilot' needs a model when it has a provider", code="executor-config")
    told = {
        "TYPE": provider.type,
        "BASE_URL": provider.base_url,
        "API_KEY": provider.api_key,
        "BEARER_TOKEN": provider.bearer_token,
        "AZURE_API_VERSION": provider.api_version,
        "HEADERS": header_lines(provider.headers) or None,
        "WIRE_API": profile.wire_api(limits) if provider.type != "anthropic" else None,
        "WIRE_MODEL": provider.model,
        "MAX_PROMPT_TOKENS": limits.max_prompt_tokens,
        "MAX_OUTPUT_TOKENS": limits.max_output_tokens,
    }
    env = {f"COPILOT_PROVIDER_{name}": str(value) for name, value in told.items() if value is not None}
    return {**env, "COPILOT_MODEL": model, "COPILOT_OFFLINE": "true"}


def _unpacked(trial: Trial) -> dict[str, str]:
    """Where the program has unpacked itself for the user already; else each trial would do that anew, in its home."""
    if trial.version is None:
        return {}
    caches = trial.host_env.get("XDG_CACHE_HOME") or str(Path(trial.host_env.get("HOME", "/"), ".cache"))
    cache = Path(caches, "copilot")
    found = next(cache.glob(f"pkg/*/{trial.version}"), None)
    return {} if found is None else {"COPILOT_PKG_CACHE_HOME": str(cache)}
