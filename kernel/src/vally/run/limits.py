"""Size limits of records: long texts lose their middle, a long line loses the least useful parts of its events."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vally.model.jsonio import encode_line
from vally.model.results import TrialResult, ordered_record
from vally.model.trajectory import Trajectory
from vally.text.display import clip_end, clip_middle

KIB = 1024
EVENT_TEXT_LIMIT = 256 * KIB
OUTPUT_LIMIT = 1024 * KIB
LINE_LIMIT = 8 * 1024 * KIB
MESSAGE_LIMIT = 4 * KIB
_SECOND_LIMITS = (16 * KIB, KIB)
_OMITTED = {"omitted": True}
_MARKER = re.compile(r"…\[[0-9]+ bytes omitted\]…")
_MARKER_ROOM = 64


def clip_text(text: str, limit: int) -> str:
    """A text of at most `limit` UTF-8 bytes, else three quarters of that from its head, a marker, and its tail."""
    return text if _is_clipped(text, limit) else clip_middle(text, limit, limit * 3 // 4, limit // 4)


def clip_message(text: str) -> str:
    """An error or warning of at most 4 KiB, else its head and a marker."""
    return text if _is_clipped(text, MESSAGE_LIMIT) else clip_end(text, MESSAGE_LIMIT)


def _is_clipped(text: str, limit: int) -> bool:
    """Whether a text is short enough, or an earlier pass cut it: what was read back must not be cut again."""
    if 4 * len(text) <= limit:
        return True
    size = len(text.encode("utf-8", "surrogatepass"))
    return size <= limit or (size <= limit + _MARKER_ROOM and _MARKER.search(text) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedRecord:
    """A trial record within all limits, its line, and the uncut trajectory when something was taken from it."""

    record: dict[str, Any]
    line: bytes
    full_trajectory: dict[str, Any] | None = None


def fit_trial_record(record: Mapping[str, Any], trajectory_path: str) -> FittedRecord:
    """Bring a plain trial record within the limits; `trajectory_path` names the sidecar for what was cut.

    The given record is not changed. The caller writes `full_trajectory` to the sidecar before the line.
    """
    fitted = _with_short_messages(record)
    trajectory = record.get("trajectory")
    if not isinstance(trajectory, dict):
        return FittedRecord(record=fitted, line=encode_line(fitted))
    line = encode_line(fitted)
    if len(line) <= EVENT_TEXT_LIMIT:
        # No text in it can be too long.
        return FittedRecord(record=fitted, line=line)
    # A record that was cut before keeps pointing at the sidecar that still has everything.
    cut_before = trajectory.get("truncated") is True and isinstance(trajectory.get("trajectoryPath"), str)
    cut = _Cut(fitted)
    line = cut.line(trajectory["trajectoryPath"] if cut_before else trajectory_path)
    uncut = trajectory if cut.changed and not cut_before else None
    return FittedRecord(record=cut.record, line=line, full_trajectory=uncut)


def _with_short_messages(record: Mapping[str, Any]) -> dict[str, Any]:
    fitted = dict(record)
    if isinstance(fitted.get("error"), str):
        fitted["error"] = clip_message(fitted["error"])
    if isinstance(fitted.get("errorInfo"), dict) and isinstance(fitted["errorInfo"].get("message"), str):
        fitted["errorInfo"] = {**fitted["errorInfo"], "message": clip_message(fitted["errorInfo"]["message"])}
    if isinstance(fitted.get("warnings"), list):
        fitted["warnings"] = [clip_message(text) if isinstance(text, str) else text for text in fitted["warnings"]]
    return fitted


@dataclass(slots=True)
class _Place:
    """A text inside nested mappings and lists, with its size as JSON."""

    container: Any
    key: Any
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = _size(self.container[self.key])

    def clip(self, limit: int) -> int:
        """Cut the text and return the number of bytes won."""
        self.container[self.key] = clip_text(self.container[self.key], limit)
        won = self.size - _size(self.container[self.key])
        self.size -= won
        return won


class _Cut:
    """A trial record whose trajectory is being cut."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.changed = False
        self._trajectory = _copied(record["trajectory"])
        self.record = {**record, "trajectory": self._trajectory}
        events = self._trajectory.get("events")
        self._events: list[Any] = events if isinstance(events, list) else []

    def line(self, trajectory_path: str) -> bytes:
        """The line, at most 8 MiB long whatever the events are."""
        self._clip_texts()
        self._mark(trajectory_path)
        line = encode_line(self.record)
        if len(line) > LINE_LIMIT:
            self.changed = True
            self._mark(trajectory_path)
            self._shrink(len(encode_line(self.record)) - LINE_LIMIT)
            line = encode_line(self.record)
        return line

    def _mark(self, trajectory_path: str) -> None:
        if self.changed:
            marked = {**self._trajectory, "truncated": True, "trajectoryPath": trajectory_path}
            self._trajectory = ordered_record(Trajectory, marked)
            self.record = ordered_record(TrialResult, {**self.record, "trajectory": self._trajectory})

    def _clip_texts(self) -> None:
        output = self._trajectory.get("output")
        if isinstance(output, str):
            self._trajectory["output"] = clip_text(output, OUTPUT_LIMIT)
            self.changed = self._trajectory["output"] != output
        for event in self._events:
            for container, key in _texts(event.get("data"), event, "data"):
                if len(container[key]) * 4 > EVENT_TEXT_LIMIT:
                    before = container[key]
                    container[key] = clip_text(before, EVENT_TEXT_LIMIT)
                    self.changed |= container[key] != before

    def _shrink(self, excess: int) -> None:
        """Take `excess` bytes out of the line, the least harm first."""
        for limit in _SECOND_LIMITS:
            if excess > 0:
                excess -= _clip_longest(self._event_places(limit), limit, excess)
        excess -= self._empty_events(excess)
        excess -= self._omit_middle(excess)
        for limit in _SECOND_LIMITS:
            # Events are gone; what is left of this size was put there by an executor, a grader or a spec.
            if excess > 0:
                excess -= _clip_longest(self._other_places(limit), limit, excess)

    def _event_places(self, limit: int) -> list[_Place]:
        return [
            _Place(container, key)
            for event in self._events
            for container, key in _texts(event.get("data"), event, "data")
            if not _is_clipped(container[key], limit)
        ]

    def _other_places(self, limit: int) -> list[_Place]:
        grade = self.record.get("gradeResult")
        if isinstance(grade, (dict, list)):
            self.record["gradeResult"] = _copied(grade)
        return [
            _Place(container, key)
            for name in ("trajectory", "gradeResult")
            for container, key in _texts(self.record.get(name), self.record, name)
            if not _is_clipped(container[key], limit)
        ]

    def _empty_events(self, excess: int) -> int:
        won = 0
        for event in self._events:
            if won >= excess:
                break
            if event.get("type") in ("reasoning", "custom") and not _is_omission(event.get("data")):
                won += _size(event.get("data")) - _size(_OMITTED)
                event["data"] = dict(_OMITTED)
        return won

    def _omit_middle(self, excess: int) -> int:
        if excess <= 0 or not self._events:
            return 0
        sizes = [_size(event) + 1 for event in self._events]
        start, end = _middle(sizes, excess + _size(_stand_in(len(sizes))))
        removed = sum(sizes[start:end])
        earlier = sum(_omitted_count(event) for event in self._events[start:end])
        stand_in = _stand_in(earlier)
        self._events[start:end] = [stand_in]
        return removed - _size(stand_in) - 1


def _is_omission(data: object) -> bool:
    return isinstance(data, dict) and (data == _OMITTED or data.get("eventType") == "events_omitted")


def _omitted_count(event: Mapping[str, Any]) -> int:
    """How many recorded events an event stands for."""
    data = event.get("data")
    if isinstance(data, dict) and data.get("eventType") == "events_omitted" and isinstance(data.get("count"), int):
        return int(data["count"])
    return 1


def _stand_in(count: int) -> dict[str, Any]:
    return {"type": "custom", "data": {"eventType": "events_omitted", "count": count}}


def _middle(sizes: list[int], excess: int) -> tuple[int, int]:
    """The range around the middle, as short as possible, whose sizes reach `excess`."""
    start = end = len(sizes) // 2
    won = 0
    while won < excess and (start > 0 or end < len(sizes)):
        if end < len(sizes) and (start == 0 or end - len(sizes) // 2 <= len(sizes) // 2 - start):
            won += sizes[end]
            end += 1
        else:
            start -= 1
            won += sizes[start]
    return start, end


def _clip_longest(places: list[_Place], limit: int, excess: int) -> int:
    won = 0
    for place in sorted(places, key=lambda place: -place.size):
        if won >= excess:
            break
        won += place.clip(limit)
    return won


def _texts(value: Any, container: Any, key: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every text in a value that lies in `container` under `key`."""
    pending = [(container, key, value)]
    while pending:
        holder, place, item = pending.pop()
        if isinstance(item, str):
            yield holder, place
        elif isinstance(item, dict):
            pending.extend((item, name, inner) for name, inner in item.items())
        elif isinstance(item, list):
            pending.extend((item, index, inner) for index, inner in enumerate(item))


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def _size(value: Any) -> int:
    """Bytes of a value as JSON."""
    return len(encode_line(value)) - 1
