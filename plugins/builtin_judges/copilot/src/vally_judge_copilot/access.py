"""Whom a session asks, and with which credentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vally import ProviderConfig, provider_secrets
from vally_executor_copilot_sdk import endpoint, github_token

TOKEN_VARIABLES = ("GITHUB_COPILOT_API_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "COPILOT_GITHUB_TOKEN")
LOGIN_HINT = (
    f"set {', '.join(TOKEN_VARIABLES[:-1])} or {TOKEN_VARIABLES[-1]}, or name another judge with judge_provider"
)


class Access:
    """The login of the user's subscription, or an endpoint; `secrets` are never to be shown."""

    def __init__(self, provider: ProviderConfig | None, process_env: Mapping[str, str]) -> None:
        self._provider = provider
        self._token = None if provider is not None else github_token(process_env, TOKEN_VARIABLES)
        tokens = () if self._token is None else (self._token,)
        self.secrets = tokens if provider is None else provider_secrets(provider)

    @property
    def stored_login(self) -> bool:
        """Whether the runtime looks for a login of its own."""
        return self._provider is None and self._token is None

    @property
    def as_json(self) -> bool:
        """Whether answers are constrained by a schema instead of being calls."""
        return self._provider is not None and self._provider.answer == "schema"

    def arguments(self, model: str) -> dict[str, Any]:
        """What a session is told of it."""
        told: dict[str, Any] = {"model": model}
        if self._provider is not None:
            told["provider"] = endpoint(self._provider, model)
        elif self._token is not None:
            told["github_token"] = self._token
        return told
