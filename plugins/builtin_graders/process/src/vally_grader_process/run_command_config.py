"""Config of `run-command`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from vally import Config, DurationText, NonEmpty, OneOrMore, Pattern, WorkspaceDirectory
from vally_grader_process.child import ChildEnvironment

Texts = Annotated[list[NonEmpty], OneOrMore]
Patterns = Annotated[list[Pattern], OneOrMore]


class RunCommandConfig(Config):
    """A shell line, or with `args` (an empty list too) an executable; and what must hold afterwards."""

    command: NonEmpty
    args: list[str] | None = None
    expected_exit_code: int = 0
    stdout_contains: Texts = Field(default_factory=list)
    stderr_contains: Texts = Field(default_factory=list)
    stdout_matches: Patterns = Field(default_factory=list)
    stdout_not_matches: Patterns = Field(default_factory=list)
    sub_path: WorkspaceDirectory | None = None
    timeout: DurationText = "30s"
    env: ChildEnvironment = Field(default_factory=dict)

    @property
    def shown(self) -> str:
        """Command and arguments joined by spaces."""
        return " ".join([self.command, *(self.args or [])])
