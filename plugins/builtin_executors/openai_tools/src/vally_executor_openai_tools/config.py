"""Config of the executor `openai-tools`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from vally import CamelConfig, DurationText, NonEmpty, ProviderSettings
from vally_executor_openai_tools.catalog import TOOLS, ToolName


class SystemPrompt(CamelConfig):
    """Text that is added to the agent's own system prompt, or takes its place."""

    mode: Literal["append", "replace"] = "append"
    content: NonEmpty


class OpenAiToolsConfig(CamelConfig):
    """The endpoint, what the agent may use, and its limits.

    `max_steps` counts answers of the model per prompt. `tool_output_bytes` bounds what one call gives back to the
    model. `retries` is how often a request is repeated. The backend applies `pass_env`.
    """

    provider: ProviderSettings
    tools: list[ToolName] = Field(default_factory=lambda: list(TOOLS))
    system_prompt: SystemPrompt | None = None
    max_steps: int = Field(default=50, gt=0)
    temperature: float | None = Field(default=None, ge=0)
    max_output_tokens: int | None = Field(default=None, gt=0)
    bash_timeout: DurationText = "120s"
    tool_output_bytes: int = Field(default=32 * 1024, ge=256)
    request_timeout: DurationText = "120s"
    retries: int = Field(default=3, ge=0, le=20)
    pass_env: list[str] = Field(default_factory=list)

    @property
    def output_tokens(self) -> int | None:
        """The limit of one answer: the agent's own, else that of the model."""
        return self.provider.max_output_tokens if self.max_output_tokens is None else self.max_output_tokens

    @field_validator("provider")
    @classmethod
    def _speaks_chat_completions(cls, value: ProviderSettings) -> ProviderSettings:
        if value.type == "anthropic":
            raise ValueError("'provider.type' must be 'openai' or 'azure'")
        if value.wire_api != "completions":
            raise ValueError("'provider.wireApi' must be 'completions'")
        return value

    @model_validator(mode="after")
    def _keys_stay_out_of_the_shell(self) -> OpenAiToolsConfig:
        for name in (self.provider.api_key_env, self.provider.bearer_token_env):
            if name is not None and name in self.pass_env:
                raise ValueError(f"'passEnv' must not hold '{name}', the credential of the model")
        return self
