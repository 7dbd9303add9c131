"""The trajectory and the diff of an outcome, read from its record."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, select

from vally_command_results.query.errors import not_found
from vally_command_results.query.outcomes import record_of, require_outcome
from vally_command_results.query.paging import PageRequest, slice_of
from vally_command_results.recorded import items, mapping, milliseconds
from vally_command_results.store.schema import extra_files

DIFF_BYTES = 16 * 1024 * 1024
NOT_RECORDED = "no diff was recorded"
_LEFT_OUT = frozenset({"events", "diff", "diffPath", "turnDiffs", "workspacePatch"})


def trajectory_page(
    connection: Connection,
    outcome_id: str,
    request: PageRequest,
    *,
    types: tuple[str, ...] = (),
    turns: tuple[int, ...] = (),
    agents: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The recorded trajectory with one page of its events; raises `QueryError` when there is none."""
    require_outcome(connection, outcome_id)
    trajectory = record_of(connection, outcome_id).get("trajectory")
    if not isinstance(trajectory, dict):
        raise not_found(f"outcome {outcome_id} has no trajectory")
    events = numbered_events(items(trajectory.get("events")))
    kept = [
        event
        for event in events
        if (not types or event.get("type") in types)
        and (not turns or event.get("turn") in turns)
        and (not agents or event.get("agentId") in agents)
    ]
    context = {"list": "events", "outcome": outcome_id, "type": types, "turn": turns, "agent": agents}
    page = slice_of(kept, request, context)
    rest = {key: value for key, value in trajectory.items() if key not in _LEFT_OUT}
    return {"outcomeId": outcome_id, "trajectory": {**rest, "events": page["items"]}, "page": page["page"]}


def numbered_events(events: list[Any]) -> list[dict[str, Any]]:
    """Events with their place in the list and their time after the first, in milliseconds."""
    found = [event for event in events if isinstance(event, dict)]
    first = next((moment for event in found if (moment := milliseconds(event.get("timestamp"))) is not None), None)
    return [{"index": index, "offsetMs": _offset(event, first), **event} for index, event in enumerate(found)]


def _offset(event: Mapping[str, Any], first: float | None) -> int | None:
    moment = milliseconds(event.get("timestamp"))
    return None if moment is None or first is None else round(moment - first)


def diff_document(connection: Connection, outcome_id: str, turn: int | None) -> dict[str, Any]:
    """The diff of a run or of one turn; a missing turn is never replaced by the whole."""
    row = require_outcome(connection, outcome_id)
    text, reason = _diff(connection, row, record_of(connection, outcome_id).get("trajectory"), turn)
    shown, truncated = ("", False) if text is None else _cut_at_file(text)
    return {
        "outcomeId": outcome_id,
        "turn": turn,
        "available": text is not None,
        "reason": reason,
        "format": "unified",
        "truncated": truncated,
        "files": changed_files(shown),
        "text": shown,
    }


def _diff(connection: Connection, row: Any, trajectory: object, turn: int | None) -> tuple[str | None, str | None]:
    if not isinstance(trajectory, dict):
        return None, "the trial has no trajectory"
    part: Mapping[str, Any] = trajectory
    if turn is not None:
        found = [item for item in map(mapping, items(trajectory.get("turnDiffs"))) if item.get("turn") == turn]
        if not found:
            return None, f"no diff of turn {turn} was recorded"
        part = found[0]
    if isinstance(part.get("diff"), str):
        return part["diff"], None
    name = part.get("diffPath")
    if isinstance(name, str):
        return _side_file(connection, row.run_id, name)
    problem = part.get("diffError") or part.get("error")
    return None, f"the diff could not be captured: {problem}" if problem else NOT_RECORDED


def _side_file(connection: Connection, run_id: str, name: str) -> tuple[str | None, str | None]:
    query = select(extra_files.c.body).where(extra_files.c.run_id == run_id, extra_files.c.name == name)
    body = connection.scalar(query)
    if body is None:
        return None, "the diff lies in a file that was not imported"
    return zlib.decompress(body).decode("utf-8", "replace"), None


_FILE = re.compile(r"^diff --git ", re.MULTILINE)


def _cut_at_file(text: str) -> tuple[str, bool]:
    if len(text) * 4 <= DIFF_BYTES or len(text.encode("utf-8", "replace")) <= DIFF_BYTES:
        return text, False
    starts = [match.start() for match in _FILE.finditer(text)]
    kept = [start for start in starts if len(text[:start].encode("utf-8", "replace")) <= DIFF_BYTES]
    return text[: kept[-1] if kept else 0], True


def changed_files(text: str) -> list[dict[str, Any]]:
    """The files of a unified diff of git with what happened to each."""
    return [_changed_file(part) for part in split_files(text)]


def split_files(text: str) -> list[str]:
    """The diff of each file."""
    starts = [match.start() for match in _FILE.finditer(text)]
    return [text[start:end] for start, end in pairwise([*starts, len(text)])]


def _changed_file(part: str) -> dict[str, Any]:
    header, *rest = re.split(r"^(?=@@ )", part, maxsplit=1, flags=re.MULTILINE)
    lines = header.splitlines()
    old, new = _paths(lines)
    body = rest[0].splitlines() if rest else []
    change = "modified"
    if any(line.startswith("new file") for line in lines):
        change = "added"
    elif any(line.startswith("deleted file") for line in lines):
        change = "deleted"
    elif any(line.startswith("rename from") for line in lines):
        change = "renamed"
    return {
        "path": old if change == "deleted" else new,
        "oldPath": old if change == "renamed" else None,
        "change": change,
        "additions": sum(line.startswith("+") for line in body),
        "deletions": sum(line.startswith("-") for line in body),
        "binary": any(line.startswith(("Binary files", "GIT binary patch")) for line in lines),
    }


def _paths(lines: list[str]) -> tuple[str, str]:
    named = {
        prefix: line[len(prefix) :] for line in lines for prefix in ("--- a/", "+++ b/") if line.startswith(prefix)
    }
    renamed = {
        prefix: line[len(prefix) :]
        for line in lines
        for prefix in ("rename from ", "rename to ")
        if line.startswith(prefix)
    }
    whole = lines[0].removeprefix("diff --git ")
    # Both halves of `a/x b/x` are equally long where nothing was renamed.
    half = whole[: len(whole) // 2].removeprefix("a/")
    old = named.get("--- a/") or renamed.get("rename from ") or half
    new = named.get("+++ b/") or renamed.get("rename to ") or half
    return old.rstrip("\t"), new.rstrip("\t")
