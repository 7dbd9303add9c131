"""The golden input of a stimulus, read once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally import VallyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vally import Stimulus, Trajectory

DEFAULT_TIMEOUT = "60s"


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenCommand:
    """A command that solves the task: a shell line, or with `args` a program without a shell."""

    command: str
    args: tuple[str, ...] | None = None
    timeout: str = DEFAULT_TIMEOUT
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """What is known to be right: a patch or a command for the workspace, and a trajectory.

    `problem` says why it cannot be used.
    """

    patch: str | None = None
    command: GoldenCommand | None = None
    trajectory: Trajectory | None = None
    kind: str
    problem: str | None = None

    @property
    def has_state(self) -> bool:
        """Whether it changes the workspace."""
        return self.kind.startswith(("patch", "command"))

    @property
    def has_trajectory(self) -> bool:
        """Whether it says what an agent would have done."""
        return self.kind.endswith("trajectory")

    @property
    def turns(self) -> frozenset[int]:
        """Conversation turns that its trajectory has."""
        events = self.trajectory.events if self.trajectory else ()
        return frozenset({0, *(event.turn for event in events if event.turn is not None)})


def has_golden(stimulus: Stimulus) -> bool:
    """Whether a stimulus declares a golden input."""
    return any((stimulus.golden_patch, stimulus.golden_command, stimulus.golden_trajectory))


def read_golden(stimulus: Stimulus) -> Golden:
    """The golden input of a stimulus that declares one; what is wrong with it becomes its `problem`."""
    kinds = [name for name in ("patch", "command", "trajectory") if getattr(stimulus, f"golden_{name}") is not None]
    values: dict[str, Any] = {}
    problem = None
    try:
        if stimulus.golden_patch is not None:
            values["patch"] = _text(stimulus.golden_patch)
        if stimulus.golden_command is not None:
            values["command"] = _command(stimulus.golden_command)
        if stimulus.golden_trajectory is not None:
            values["trajectory"] = _trajectory(stimulus)
    except (OSError, ValueError, VallyError) as error:
        problem = f"golden_{kinds[-1]}: {getattr(error, 'message', None) or error}"
    return Golden(kind="+".join(kinds), problem=problem, **values)


def _text(content: Mapping[str, object]) -> str:
    if "inline" in content:
        inline = content["inline"]
        return inline if isinstance(inline, str) else json.dumps(inline)
    # Carriage returns belong to the lines of a patch.
    return Path(str(content["path"])).read_bytes().decode("utf-8", "surrogateescape")


def _command(value: Mapping[str, object] | str) -> GoldenCommand:
    if isinstance(value, str):
        return GoldenCommand(command=value, env={})
    fields: Mapping[str, Any] = value
    return GoldenCommand(
        command=fields["command"],
        args=tuple(fields["args"]) if "args" in fields else None,
        timeout=fields.get("timeout", DEFAULT_TIMEOUT),
        env=fields.get("env") or {},
    )


def _trajectory(stimulus: Stimulus) -> Trajectory:
    from vally import import_atif

    assert stimulus.golden_trajectory is not None
    document = json.loads(_text(stimulus.golden_trajectory))
    return import_atif(document, prompts=stimulus.turns).trajectory
