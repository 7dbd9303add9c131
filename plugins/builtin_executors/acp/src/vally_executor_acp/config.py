"""Config of the executor `acp`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from vally import CamelConfig, DurationText, NonEmpty, WorkspaceDirectory
from vally_executor_acp.permissions import PermissionRules, Policy
from vally_executor_acp.profiles import PROFILES, AgentProvider, Profile, ProfileName

MODEL = "{model}"
_RESERVED = ("EVALUATE_", "VALLY_")


class AcpConfig(CamelConfig):
    """How to run the agent: a profile, or the command line of another one.

    `mode` is the session mode to set, `auth` the method to authenticate with. `skills_dir` is relative to the
    workspace. The backend applies `pass_env` and `home` to the environment that the executor gets.
    """

    profile: ProfileName | None = None
    command: list[NonEmpty] | None = Field(default=None, min_length=1)
    mode: NonEmpty | None = None
    auth: NonEmpty | None = None
    permissions: Policy = "allow-all"
    init_timeout: DurationText = "60s"
    sessions_per_agent: int = Field(default=1, ge=1, le=64)
    provider: AgentProvider | None = None
    skills_dir: WorkspaceDirectory | None = None
    env: dict[str, str] = Field(default_factory=dict)
    pass_env: list[str] = Field(default_factory=list)
    home: Literal["private", "host"] = "private"

    @property
    def known(self) -> Profile:
        """The profile, an empty one for an agent of the user's own."""
        return Profile() if self.profile is None else PROFILES[self.profile]

    @property
    def skills_place(self) -> str | None:
        """Where in the workspace the agent looks for skills; None when nobody knows."""
        return self.skills_dir or self.known.skills_dir

    @property
    def takes_skills(self) -> bool:
        """Whether the agent can be offered skills; those in its home would be offered to all whom it serves."""
        by_home = self.known.skills_by_home and self.home == "private"
        return self.skills_place is not None and not (by_home and self.sessions_per_agent > 1)

    @property
    def modes(self) -> tuple[str, ...]:
        """The session modes of which the first that the agent has is to be set."""
        if self.mode is not None:
            return (self.mode,)
        return self.known.modes if self.permissions == "allow-all" else self.known.asking_modes

    @property
    def takes_model(self) -> bool:
        """Whether the agent can be told which model to use."""
        words = self.command or ()
        return self.profile is not None or any(MODEL in word for word in (*words, *self.env.values()))

    @field_validator("env")
    @classmethod
    def _environment_can_be_set(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not name or "=" in name or "\0" in name + text:
                raise ValueError(f"'env' has the unusable name or value '{name}'")
            if name.upper().startswith(_RESERVED):
                raise ValueError(f"'env' name '{name}' is reserved")
        return value

    @model_validator(mode="after")
    def _an_agent_is_named(self) -> AcpConfig:
        if self.profile is None and self.command is None:
            raise ValueError("'profile' or 'command' is required")
        if not self.known.asks and isinstance(self.permissions, PermissionRules):
            raise ValueError(
                "'permissions' cannot be rules with this profile: the agent asks only when it wants more than its mode"
            )
        if self.known.per_trial and self.sessions_per_agent > 1:
            raise ValueError("'sessionsPerAgent' must be 1 with this profile")
        if self.provider is not None:
            if self.profile is None:
                raise ValueError("'provider' needs a 'profile': how to tell another agent is not known; use 'env'")
            problem = self.known.provider_problem(self.provider)
            if problem is not None:
                raise ValueError(problem)
        return self
