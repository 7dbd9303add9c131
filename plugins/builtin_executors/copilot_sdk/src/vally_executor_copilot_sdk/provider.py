"""Who answers the agent's model calls: an endpoint of one's own, or GitHub Copilot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vally import ExecutorError, ExecutorOptions, ProviderConfig, ProviderSettings, VallyError, resolve_provider
from vally_executor_copilot_sdk.environment import github_token


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAccess:
    """Arguments of a session that say which model it asks and where.

    `provider` is in the SDK's spelling, `github_token` the login; with neither, the stored login is used. Both hold
    secrets.
    """

    model: str | None
    provider: Mapping[str, Any] | None = field(default=None, repr=False)
    github_token: str | None = field(default=None, repr=False)

    @property
    def stored_login(self) -> bool:
        """Whether the runtime looks for a login of its own."""
        return self.provider is None and self.github_token is None


def model_access(settings: ProviderSettings | None, options: ExecutorOptions) -> ModelAccess:
    """Decide who is asked; raises `ExecutorError` when something is missing."""
    if settings is None:
        return ModelAccess(model=options.model, github_token=github_token(options.process_env))
    model = options.model or settings.model
    if model is None:
        raise ExecutorError(
            "a model is required with 'provider'; set defaults.model, provider.model or --model",
            code="executor-config",
        )
    return ModelAccess(model=model, provider=sdk_provider(settings, model, options.process_env))


def sdk_provider(settings: ProviderSettings, model: str, process_env: Mapping[str, str]) -> dict[str, Any]:
    """The endpoint in the SDK's spelling, with the values of its variables."""
    try:
        resolved = resolve_provider(settings.config(), process_env)
    except VallyError as error:
        raise ExecutorError(f"provider.{error.where}: {error.message}", code="executor-config") from None
    limits = {"max_prompt_tokens": settings.max_prompt_tokens, "max_output_tokens": settings.max_output_tokens}
    return {**endpoint(resolved, model), **{name: value for name, value in limits.items() if value is not None}}


def endpoint(resolved: ProviderConfig, model: str) -> dict[str, Any]:
    """An endpoint whose variables have their values, in the SDK's spelling; `model` is the one of the session."""
    told: dict[str, Any] = {
        "type": resolved.type,
        "base_url": resolved.base_url,
        "api_key": resolved.api_key,
        "bearer_token": resolved.bearer_token,
        "headers": dict(resolved.headers) or None,
        "wire_api": None if resolved.type == "anthropic" else resolved.wire_api,
        "azure": {"api_version": resolved.api_version} if resolved.api_version else None,
        "wire_model": resolved.model if resolved.model != model else None,
    }
    return {name: value for name, value in told.items() if value is not None}
