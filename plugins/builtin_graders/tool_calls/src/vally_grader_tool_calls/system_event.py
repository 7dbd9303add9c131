"""`system-event`: which events of the session itself occurred, and which did not."""

from __future__ import annotations

from vally_grader_tool_calls.named_events import NamedEvents, NamesConfig


class SystemEventConfig(NamesConfig):
    """Types of system events, such as `compaction`."""


class SystemEvent(NamedEvents):
    """Counts events of the session itself; those that only an executor knows (`custom`) are none."""

    keyword = "system-event"
    event_type = "system"
    name_key = "eventType"
    noun = "system event"
    happened = "observed"
