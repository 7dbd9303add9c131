"""What an importer returns, and what importers share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vally.model.jsonio import parse_timestamp, timestamp
from vally.model.metrics import compute_metrics
from vally.model.trajectory import Event, Trajectory
from vally.model.turns import attribute_turns


@dataclass(frozen=True, slots=True)
class Imported:
    """A trajectory in the form of vally, and what was odd about the original, a line each."""

    trajectory: Trajectory
    warnings: tuple[str, ...] = ()


def with_turns(trajectory: Trajectory, prompts: Sequence[str]) -> Trajectory:
    """The trajectory with the conversation turns of its events told by the prompts of a stimulus.

    The document that an imported trajectory carries of its stimulus becomes that of the prompts.
    """
    if not prompts:
        return trajectory
    events = attribute_turns(trajectory.events, prompts)
    stimulus: dict[str, Any] = {**trajectory.stimulus, "prompt": "\n\n".join(prompts)}
    if len(prompts) > 1:
        stimulus["turns"] = list(prompts)
    return trajectory.model_copy(update={"events": events, "stimulus": stimulus})


def prompts_of(trajectory: Trajectory) -> list[str]:
    """The user messages to the main agent, in order."""
    texts = (event.data.get("content") for event in trajectory.events if _is_prompt(event))
    return [text for text in texts if isinstance(text, str)]


def _is_prompt(event: Event) -> bool:
    return event.type == "user_message" and event.agent_id is None


def finished(fields: dict[str, Any], events: list[Event], wall_time_ms: int | None, warnings: list[str]) -> Imported:
    """A trajectory of mapped events, with the metrics that they come to."""
    metrics = compute_metrics(events, warnings)
    metrics.wall_time_ms = wall_time_ms
    return Imported(Trajectory(events=events, metrics=metrics, **fields), tuple(dict.fromkeys(warnings)))


def moment(value: object) -> str | None:
    """A time as records write it; None when it is none."""
    parsed = parse_timestamp(value)
    return None if parsed is None else timestamp(parsed)


def span_ms(start: object, end: object) -> int | None:
    """Milliseconds between two times; None when one is missing."""
    first, last = parse_timestamp(start), parse_timestamp(end)
    if first is None or last is None:
        return None
    return max(0, round((last - first).total_seconds() * 1000))
