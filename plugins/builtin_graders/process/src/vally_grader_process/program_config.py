"""Config of `program`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from vally import Config, DurationText, NonEmpty, WorkspaceDirectory
from vally_grader_process.child import ChildEnvironment


class ProgramConfig(Config):
    """An executable with arguments, or with `shell` both as one line for the shell."""

    program: NonEmpty
    args: list[str] = Field(default_factory=list)
    shell: bool = False
    sub_path: WorkspaceDirectory | None = None
    timeout: DurationText = "60s"
    env: ChildEnvironment = Field(default_factory=dict)

    @property
    def shown(self) -> str:
        """Program and arguments joined by spaces."""
        return " ".join([self.program, *self.args])

    def without_secrets(self) -> dict[str, Any]:
        """The config as the program may see it: values of `env` hidden, keys that were not given left out."""
        written = self.model_dump(exclude_unset=True)
        return {**written, "env": dict.fromkeys(self.env, "<redacted>")} if self.env else written
