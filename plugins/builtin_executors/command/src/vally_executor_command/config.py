"""Config of the executor `command`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from vally import CamelConfig, did_you_mean
from vally_executor_command.dialects import DIALECTS
from vally_executor_command.profiles import PROFILES, Profile
from vally_executor_command.provider import CommandProvider
from vally_executor_command.templates import Template, check, check_template, used

PromptBy = Literal["arg", "stdin", "file"]
_BY_PLACEHOLDER: dict[PromptBy, str] = {"arg": "prompt", "file": "prompt_file"}
_RESERVED = ("EVALUATE_", "VALLY_")


class CommandConfig(CamelConfig):
    """How to run the agent.

    A `profile` gives `command`, `continueCommand`, `dialect` and `skillsDir`; what is written beats it. `command` and
    `continue_command` are argv templates for the first and for later turns. `provider` needs a profile. `env` values
    may use placeholders. `max_output_bytes` bounds what one turn may write. `skills_dir` is relative to the workspace.
    The backend applies `pass_env` and `home` to the environment that the executor gets.
    """

    profile: str | None = None
    command: list[str | list[str]] = Field(default_factory=list)
    continue_command: list[str | list[str]] | None = None
    prompt: PromptBy | None = None
    dialect: str = "text"
    provider: CommandProvider | None = None
    skills_dir: str | None = None
    success_exit_codes: list[int] = Field(default=[0], min_length=1)
    env: dict[str, str] = Field(default_factory=dict)
    pass_env: list[str] = Field(default_factory=list)
    home: Literal["private", "host"] = "private"
    max_output_bytes: int = Field(default=64 * 2**20, gt=0)

    @property
    def agent(self) -> Profile | None:
        """What is known of the agent."""
        return None if self.profile is None else PROFILES[self.profile]

    def template(self, turn: int) -> Template:
        """The template of a conversation turn."""
        return self.command if turn == 0 or self.continue_command is None else self.continue_command

    def prompt_by(self, turn: int) -> PromptBy:
        """How the prompt of a turn reaches the agent."""
        if self.prompt is not None:
            return self.prompt
        placeholders = used(self.template(turn))
        return next((by for by, name in _BY_PLACEHOLDER.items() if name in placeholders), "stdin")

    def uses(self, placeholder: str) -> bool:
        """Whether the command line or the environment of the first turn tells the agent this value."""
        return placeholder in used(self.command) or placeholder in used(list(self.env.values()))

    @model_validator(mode="before")
    @classmethod
    def _presets_of_the_profile(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        name = values.get("profile")
        if not isinstance(name, str):
            return values
        if name not in PROFILES:
            raise ValueError(_one_of("profile", name, PROFILES))
        return {**_presets(PROFILES[name]), **values}

    @field_validator("command", "continue_command")
    @classmethod
    def _templates_can_be_filled(cls, value: Template | None) -> Template | None:
        if value is not None:
            check_template(value)
        return value

    @field_validator("dialect")
    @classmethod
    def _dialect_is_known(cls, value: str) -> str:
        if value not in DIALECTS:
            raise ValueError(_one_of("dialect", value, DIALECTS))
        return value

    @field_validator("skills_dir")
    @classmethod
    def _skills_stay_in_the_workspace(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = PurePosixPath(value.replace("\\", "/")).parts
        if not parts or value.startswith(("/", "\\")) or PureWindowsPath(value).drive or {"..", ".git"} & set(parts):
            raise ValueError("'skillsDir' must be a relative path inside the workspace")
        return value

    @field_validator("env")
    @classmethod
    def _environment_can_be_set(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not name or "=" in name or "\0" in name:
                raise ValueError(f"'env' has the unusable name '{name}'")
            if name.upper().startswith(_RESERVED):
                raise ValueError(f"'env' name '{name}' is reserved")
        check(value.values())
        return value

    @model_validator(mode="after")
    def _there_is_a_command(self) -> CommandConfig:
        if not self.command:
            raise ValueError("'command' or 'profile' is required")
        return self

    @model_validator(mode="after")
    def _prompt_is_told(self) -> CommandConfig:
        needed = _BY_PLACEHOLDER.get(self.prompt) if self.prompt else None
        for key, template in (("command", self.command), ("continueCommand", self.continue_command)):
            if needed and template is not None and needed not in used(template):
                raise ValueError(f"'prompt: {self.prompt}' needs '{{{needed}}}' in '{key}'")
        return self

    @model_validator(mode="after")
    def _agent_can_use_the_provider(self) -> CommandConfig:
        if self.provider is None:
            return self
        problem = "'provider' needs 'profile'; without one, hand on the address with 'env' and the key with 'passEnv'"
        if self.agent is not None:
            problem = self.agent.provider_problem(self.provider) or ""
        if problem:
            raise ValueError(problem)
        return self


def _presets(profile: Profile) -> dict[str, Any]:
    return {
        "command": _lists(profile.command),
        "continueCommand": _lists(profile.continue_command),
        "dialect": profile.name,
        "skillsDir": profile.skills_dir,
    }


def _lists(template: Template) -> list[str | list[str]]:
    return [item if isinstance(item, str) else list(item) for item in template]


def _one_of(key: str, value: str, known: Mapping[str, object]) -> str:
    near = did_you_mean(value, known)
    return f"'{key}' must be one of: {', '.join(known)}{f'; {near}' if near else ''}"
