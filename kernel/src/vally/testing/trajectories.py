"""Terse builders of events and trajectories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vally.model.trajectory import Event, Trajectory

_ENVELOPE = ("timestamp", "turn", "agent_id", "agent_name")


def event(type: str, **data: Any) -> Event:
    """One event. Keys of `data` may be written in snake_case: `event("tool_call", tool_name="bash")`.

    `timestamp`, `turn`, `agent_id` and `agent_name` go to the envelope.
    """
    from vally.model.trajectory import Event

    envelope = {key: data.pop(key) for key in _ENVELOPE if key in data}
    return Event(type=type, data={_camel(key): value for key, value in data.items()}, **envelope)


def _camel(key: str) -> str:
    head, *rest = key.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def trajectory(*events: Event, **fields: Any) -> Trajectory:
    """A trajectory of these events; what follows from them is computed unless it is among `fields`.

    That is `metrics` and `output`. `prompt` and `turns` are written into `stimulus`.
    """
    from vally.model.metrics import compute_metrics
    from vally.model.trajectory import Trajectory
    from vally.model.views import final_output

    stimulus: dict[str, Any] = {"name": "stimulus", "prompt": "Do it."}
    if "turns" in fields:
        turns = list(fields.pop("turns"))
        stimulus |= {"turns": turns, "prompt": "\n\n".join(turns)}
    if "prompt" in fields:
        stimulus["prompt"] = fields.pop("prompt")
    computed = {
        "id": "11111111-1111-4111-8111-111111111111",
        "stimulus": stimulus,
        "output": final_output(events),
        "end_reason": "completed",
    }
    made = Trajectory(events=list(events), **{**computed, **fields})
    return made if made.metrics is not None else made.model_copy(update={"metrics": compute_metrics(made.events)})
