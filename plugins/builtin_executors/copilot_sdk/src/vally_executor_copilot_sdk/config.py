"""Config of the executor `copilot-sdk`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from vally import CamelConfig, NonEmpty, ProviderSettings, SpecFile
from vally_executor_copilot_sdk.permissions import Policy

MOST_SESSIONS = 32


class SystemMessage(CamelConfig):
    """Text that is appended to the system message of the agent, or put in its place."""

    mode: Literal["append", "replace"]
    content: str


class CopilotConfig(CamelConfig):
    """How to run Copilot.

    `provider` is a model endpoint of one's own; without it the subscription is used. `cli_path` names the runtime or
    the CLI. With `config_discovery` and `builtin_skills` the agent gets more than the spec lists. `ask_user` holds
    answers to the agent's questions. `sessions_per_client` bounds the sessions that one runtime process serves at
    once. `cassette_dir` is relative to the eval. The backend applies `pass_env` and `home` to the environment that
    the executor gets.
    """

    provider: ProviderSettings | None = None
    cli_path: SpecFile | None = None
    agent: NonEmpty | None = None
    custom_instructions: Literal["workspace", "none"] = "workspace"
    config_discovery: bool = False
    builtin_skills: bool = False
    available_tools: list[NonEmpty] | None = None
    excluded_tools: list[NonEmpty] | None = None
    system_message: SystemMessage | None = None
    permissions: Policy = "allow-all"
    ask_user: list[str] | None = None
    settings: dict[str, Any] | None = None
    large_output_bytes: Annotated[int, Field(gt=0)] | None = None
    streaming: bool = False
    clients: Literal["shared", "per-trial"] = "shared"
    sessions_per_client: Annotated[int, Field(gt=0, le=MOST_SESSIONS)] | None = None
    pass_env: list[NonEmpty] = Field(default_factory=list)
    home: Literal["private", "host"] = "private"
    cassette: Literal["off", "record", "replay"] = "off"
    cassette_dir: NonEmpty = "cassettes"
    cassette_match: Literal["sequence", "strict"] = "sequence"

    @model_validator(mode="after")
    def _fit_for_cassettes(self) -> Self:
        if self.cassette == "off":
            return self
        if self.provider is None:
            raise ValueError(f"'cassette: {self.cassette}' needs 'provider'")
        if self.cassette == "record":
            return self
        # Nobody is asked, so that no key is needed either.
        unasked = self.provider.model_copy(update={"api_key_env": None, "bearer_token_env": None})
        return self.model_copy(update={"provider": unasked})
