"""What both keywords share: where and with which environment a child runs, and what is told of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from vally import Completed, EnvironmentMap, GraderInput, accessible_workspace, compact_json, parse_duration

RESERVED = ("EVALUATE_WORKSPACE", "EVALUATE_GRADER_INPUT")
KEPT_CHARACTERS = 4_096


def _without_reserved(variables: dict[str, str | bool | int | float]) -> dict[str, str | bool | int | float]:
    for name in variables:
        if name.upper() in RESERVED:
            raise ValueError(f"'env' must not set the reserved variable '{name.upper()}'")
    return variables


ChildEnvironment = Annotated[EnvironmentMap, AfterValidator(_without_reserved)]
"""Environment variables without the reserved ones, in any letter case."""


class BadDirectory(Exception):
    """`sub_path` cannot be the working directory; the text is the evidence of the fail."""


def working_directory(input: GraderInput[Any]) -> Path:
    """The workspace, or the directory `sub_path` in it; raises BadDirectory, and GraderError without a workspace."""
    workspace = accessible_workspace(input.trajectory)
    written: str | None = input.config.sub_path
    if written is None:
        return workspace
    directory = workspace / written.replace("\\", "/")
    if not directory.is_dir():
        raise BadDirectory(f"Working directory '{written}' does not exist in the workspace")
    if not directory.resolve().is_relative_to(workspace.resolve()):
        raise BadDirectory(f"sub_path '{written}' escapes the workspace")
    return directory


def child_environment(input: GraderInput[Any], **reserved: str) -> dict[str, str]:
    """The environment of graders, then `env` of the config, then the seed of the run and the reserved variables."""
    inherited = {name: value for name, value in input.env.items() if name.upper() not in RESERVED}
    settings: Mapping[str, Any] = input.config.env
    own = {name: value if isinstance(value, str) else compact_json(value) for name, value in settings.items()}
    seed = {} if input.seed is None else {"EVALUATE_SEED": str(input.seed)}
    return {**inherited, **seed, **own, "EVALUATE_WORKSPACE": input.trajectory.work_dir, **reserved}


def shell_command(line: str) -> list[str]:
    """The arguments that run a line in the platform's shell."""
    if sys.platform == "win32":
        return ["cmd.exe", "/d", "/s", "/c", line]
    return ["/bin/sh", "-c", line]


def direct_command(program: str, args: list[str], directory: Path) -> list[str]:
    """The arguments that run a program without a shell; a relative path of it starts at the working directory."""
    if sys.platform == "win32" and os.path.dirname(program):  # noqa: PTH120  # "./x" has a directory, Path("./x") none
        program = str(directory / program)
    return [program, *args]


def seconds(duration: str) -> float:
    """Seconds of a duration text."""
    return parse_duration(duration) / 1000


def output_metadata(stream: str, data: bytes, truncated: bool) -> dict[str, Any]:
    """The end of an output for the result's metadata, and whether anything is missing of it."""
    text = data.decode("utf-8", "replace")
    flag = {f"{stream}Truncated": True} if truncated or len(text) > KEPT_CHARACTERS else {}
    return {stream: text[-KEPT_CHARACTERS:], **flag}


def outputs_metadata(completed: Completed) -> dict[str, Any]:
    """Both outputs for the result's metadata."""
    return {
        **output_metadata("stdout", completed.stdout, completed.stdout_truncated),
        **output_metadata("stderr", completed.stderr, completed.stderr_truncated),
    }
