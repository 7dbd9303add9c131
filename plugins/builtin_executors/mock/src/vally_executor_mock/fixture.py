"""Fixtures: what the mock agent does instead of thinking."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from vally import Event, ExecutorError, RecordError, attribute_turns, load_trajectory, segment


class ScriptedError(BaseModel):
    """An `ExecutorError` to raise."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True, alias_generator=to_camel)

    message: str
    code: str
    retryable: bool = False
    retry_after_ms: int | None = Field(default=None, ge=0)
    details: dict[str, Any] | None = None


class Step(BaseModel):
    """What the agent does in one turn; keys that are not its own are those of a recorded trajectory."""

    model_config = ConfigDict(extra="ignore", strict=True, populate_by_name=True, alias_generator=to_camel)

    output: str | None = None
    events: tuple[Event, ...] | None = None
    end_reason: str | None = None
    metadata: dict[str, Any] | None = None
    metrics: dict[str, Any] | None = None
    files: dict[str, str | None] = Field(default_factory=dict)
    delay_ms: float = Field(default=0, ge=0, allow_inf_nan=False)
    error: ScriptedError | None = None
    skip: str | bool | None = None


class Fixture(Step):
    """A whole fixture: one step for the session, or one for each turn."""

    turns: tuple[Step, ...] | None = Field(default=None, min_length=1)

    def step(self, turn: int, prompts: Sequence[str]) -> Step:
        """The step of a conversation turn; the last repeats, and a recorded session is cut into its turns."""
        if self.turns:
            return self.turns[min(turn, len(self.turns) - 1)]
        if self.events is None or len(prompts) < 2:
            return self
        of_turn = [event for event, own in zip(self.events, _turns(self.events, prompts), strict=True) if own == turn]
        first_only = {} if turn == 0 else {"files": {}, "delay_ms": 0, "error": None, "skip": None}
        return self.model_copy(update={"events": tuple(of_turn), **first_only})


def find_fixture(name: str, directories: Sequence[Path]) -> Path | None:
    """The fixture of a stimulus, by its name or its path segment, in the first directory that has one."""
    for directory in directories:
        for stem in dict.fromkeys((name, segment(name))):
            path = _inside(directory, f"{stem}.json")
            if path is not None:
                return path
    return None


def read_fixture(path: Path) -> Fixture:
    """Read a fixture; raises `ExecutorError` with the code `agent-protocol` when it is malformed."""
    try:
        value = json.loads(path.read_bytes())
        if not isinstance(value, dict):
            raise RecordError("", "must be an object")
        fields = _with_events(value, "")
        if isinstance(value.get("turns"), list):
            fields["turns"] = tuple(_with_events(item, f"/turns/{n}") for n, item in enumerate(value["turns"]))
        return Fixture.model_validate(fields)
    except RecordError as error:
        raise _malformed(path, error.message) from None
    except ValidationError as error:
        raise _malformed(path, _first_problem(error)) from None
    except (OSError, ValueError, RecursionError) as error:
        raise _malformed(path, str(error)) from None


def _with_events(value: Any, pointer: str) -> dict[str, Any]:
    """Replace raw events by read ones, as leniently as a recorded trajectory is read."""
    if not isinstance(value, Mapping):
        raise RecordError(pointer, "must be an object")
    fields = {key: item for key, item in value.items() if item is not None}
    if "events" in fields:
        fields["events"] = tuple(load_trajectory({"events": fields["events"]}, pointer).events)
    return fields


def _inside(directory: Path, name: str) -> Path | None:
    # A stimulus may have any name, `../x` and one that is too long for the file system included.
    try:
        if not (directory / name).is_file():
            return None
        path = (directory / name).resolve()
        return path if path.is_relative_to(directory.resolve()) else None
    except (OSError, ValueError):
        return None


def _turns(events: Sequence[Event], prompts: Sequence[str]) -> list[int]:
    """The conversation turn of each event of a recorded session; all of the first when that is not known."""
    if all(event.turn is None for event in events):
        events = attribute_turns(events, prompts)
    turns: list[int] = []
    current = 0
    for event in events:
        current = current if event.turn is None else event.turn
        turns.append(min(current, len(prompts) - 1))
    return turns


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    pointer = "".join(f"/{part}" for part in first["loc"] if part not in ("str", "bool"))
    return f"{pointer or '/'}: {first['msg']}"


def _malformed(path: Path, problem: str) -> ExecutorError:
    return ExecutorError(f"malformed fixture '{path.name}': {problem}", code="agent-protocol")
