"""The provider shape as a part of executor configs: where the model of an agent is, and how to ask it."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from vally.model.config import CamelConfig
from vally.model.evalspec import ProviderConfig
from vally.model.fields import NonEmpty


def _checked_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        _ = parts.port  # a number that no port has is found here
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("'baseUrl' must be an http or https URL")
    if "@" in parts.netloc:
        raise ValueError("'baseUrl' must not hold credentials; use apiKeyEnv or bearerTokenEnv")
    return value


Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_ANTHROPIC_VERSION = "/v1"


class ProviderSettings(CamelConfig):
    """An endpoint of a model, the value of `provider` in an executor's config.

    `api_key_env` and `bearer_token_env` name variables; `config` gives what `resolve_provider` reads their values for.
    `max_prompt_tokens` and `max_output_tokens` are limits of the model.
    """

    type: Literal["openai", "azure", "anthropic"]
    base_url: Annotated[str, AfterValidator(_checked_url)]
    api_key_env: Variable | None = None
    bearer_token_env: Variable | None = None
    api_version: NonEmpty | None = None
    model: NonEmpty | None = None
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    wire_api: Literal["completions", "responses"] = "completions"
    max_prompt_tokens: int | None = Field(default=None, gt=0)
    max_output_tokens: int | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _one_credential(self) -> ProviderSettings:
        if self.api_key_env is not None and self.bearer_token_env is not None:
            raise ValueError("only one of 'apiKeyEnv' and 'bearerTokenEnv' can be set")
        return self

    @property
    def notice(self) -> str | None:
        """What a user should change although it works; None when there is nothing."""
        endpoint = self._endpoint()
        if endpoint == self.base_url.rstrip("/"):
            return None
        return f"provider.baseUrl: '{_ANTHROPIC_VERSION}' at its end is ignored; write '{endpoint}'"

    def config(self) -> ProviderConfig:
        """The same as the dataclass that judges use too; the base URL has no slash at its end."""
        return ProviderConfig(
            type=self.type,
            base_url=self._endpoint(),
            api_key_env=self.api_key_env,
            bearer_token_env=self.bearer_token_env,
            api_version=self.api_version,
            model=self.model,
            headers=dict(self.headers),
            wire_api=self.wire_api,
        )

    def _endpoint(self) -> str:
        url = self.base_url.rstrip("/")
        # Agents and libraries of this family add the version themselves.
        return url.removesuffix(_ANTHROPIC_VERSION) if self.type == "anthropic" else url
