"""What a profile knows of an agent, and what it is told of a trial."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from vally import ExecutorError, McpServer, ProviderConfig
from vally_executor_command.provider import CommandProvider
from vally_executor_command.templates import Template

# The variables in which agents find what must not stand in their command lines.
KEY_VARIABLE = "AGENT_PROVIDER_KEY"
HEADER_VARIABLE = "AGENT_PROVIDER_HEADER_{}"
NO_KEY = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a profile may use of a trial.

    `home` is the trial's own home directory, None when the caller's is kept. `provider` has its credentials, `limits`
    are those of its model. `env` is the environment of its agent, `host_env` that of vally. `version` is that of the
    installed program, when it is known.
    """

    work_dir: Path
    trial_dir: Path
    home: Path | None
    env: Mapping[str, str]
    model: str | None = None
    provider: ProviderConfig | None = None
    limits: CommandProvider | None = None
    servers: Mapping[str, McpServer] = field(default_factory=dict)
    host_env: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None

    @property
    def wire_model(self) -> str | None:
        """The name of the model for the provider."""
        return (self.provider.model if self.provider else None) or self.model

    @property
    def secret(self) -> str | None:
        """Key or token of the provider."""
        return (self.provider.api_key or self.provider.bearer_token) if self.provider else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Additions:
    """What a trial adds to the command line and to the environment; arguments go before a `--`, else to the end."""

    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


class Profile(ABC):
    """One agent. Class variables are the presets of `CommandConfig` and what the agent can be told.

    `package` is its npm package. `families` are the provider types it speaks, each with its kinds of request, the
    usual one first. `mcp_by_file` tells that it gets MCP servers by a file that it finds by itself. `limits` are the
    limits of a model that it can be told. `gaps` are what a user should know that it does not do.
    """

    name: ClassVar[str]
    package: ClassVar[str]
    command: ClassVar[Template]
    continue_command: ClassVar[Template]
    skills_dir: ClassVar[str]
    families: ClassVar[Mapping[str, tuple[str, ...]]]
    mcp_by_file: ClassVar[bool] = False
    limits: ClassVar[frozenset[str]] = frozenset()
    needs_model: ClassVar[bool] = False
    gaps: ClassVar[tuple[str, ...]] = ()

    @property
    def hint(self) -> str:
        """How to get the program."""
        return f"install it with 'npm install -g {self.package}', or name another program in 'command'"

    def provider_problem(self, provider: CommandProvider) -> str | None:
        """Why the agent cannot use an endpoint; None when it can."""
        if provider.type not in self.families:
            return f"profile '{self.name}' speaks {_either(self.families)}, not provider.type '{provider.type}'"
        kinds = self.families[provider.type]
        if "wire_api" in provider.model_fields_set and provider.wire_api not in kinds:
            return f"profile '{self.name}' sends {_either(kinds)}, not provider.wireApi '{provider.wire_api}'"
        told = {"maxPromptTokens": provider.max_prompt_tokens, "maxOutputTokens": provider.max_output_tokens}
        for key, value in told.items():
            if value is not None and key not in self.limits:
                return f"profile '{self.name}' cannot tell its agent provider.{key}"
        if provider.api_version is not None and "azure" not in self.families:
            return f"profile '{self.name}' cannot tell its agent provider.apiVersion"
        return None

    def wire_api(self, provider: CommandProvider) -> str:
        """The kind of request: the one that was asked for, else the agent's usual one."""
        kinds = self.families[provider.type]
        return provider.wire_api if "wire_api" in provider.model_fields_set or not kinds else kinds[0]

    def model_argument(self, trial: Trial) -> str:
        """The value of `{model}`."""
        return trial.wire_model or ""

    def mcp_server(self, server: McpServer) -> McpServer:
        """A server as it stands in the file of `{mcp_config}`."""
        return server

    @abstractmethod
    def add(self, trial: Trial) -> Additions:
        """Write the agent's own files below the trial's directories, and tell what to add.

        Raises `ExecutorError` for what the agent cannot be told. Called once per trial; blocks.
        """

    def failed_servers(self, stderr: str, names: Iterable[str]) -> Mapping[str, str]:
        """MCP servers that did not come up, as far as the agent tells that on stderr only."""
        return {}

    def has_builtin_skill(self, name: str, trial: Trial) -> bool:
        """Whether a skill belongs to the agent itself, when the agent does not tell."""
        return False


def header_variables(provider: ProviderConfig) -> dict[str, str]:
    """Variable names of the headers of a provider, by header."""
    return {name: HEADER_VARIABLE.format(number) for number, name in enumerate(provider.headers)}


def secret_environment(trial: Trial) -> dict[str, str]:
    """The variables that hold key and headers of the provider, for agents that can be told names of variables."""
    provider = trial.provider
    if provider is None:
        return {}
    headers = {variable: provider.headers[name] for name, variable in header_variables(provider).items()}
    return {**headers, KEY_VARIABLE: trial.secret or NO_KEY}


def header_lines(headers: Mapping[str, str]) -> str:
    """Headers as lines `Name: value`."""
    return "\n".join(f"{name}: {value}" for name, value in headers.items())


def unsupported(profile: Profile, what: str) -> ExecutorError:
    """The refusal of an option that only the profile can judge."""
    return ExecutorError(
        f"executor 'command' with profile '{profile.name}' does not support {what}", code="unsupported-option"
    )


def needs_private_home(profile: Profile, trial: Trial, what: str) -> Path:
    """The trial's own home; raises `ExecutorError` when the caller's is kept, where nothing may be written."""
    if trial.home is None:
        raise unsupported(profile, f"{what} with 'home: host'")
    return trial.home


def refuse_above(profile: Profile, work_dir: Path, names: Sequence[str]) -> None:
    """Raise `ExecutorError` when a directory above the workspace has something that the agent would take up."""
    for directory in work_dir.parents:
        for name in names:
            if next(directory.glob(name), None) is not None:
                place = directory / name.split("/*")[0]
                raise ExecutorError(
                    f"the workspace lies below '{directory}', and profile '{profile.name}' would use '{place}' too; "
                    "keep workspaces elsewhere, or make the workspace a git repository",
                    code="executor-config",
                )


def _either(words: Iterable[str]) -> str:
    return " or ".join(words)
