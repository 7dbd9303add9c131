"""One trial."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from vally_command_results.query.errors import not_found
from vally_command_results.query.outcomes import (
    list_calls,
    neighbours,
    outcome_detail,
    raw_line,
    record_of,
    require_outcome,
)
from vally_command_results.query.paging import MAX_LIMIT, PageRequest
from vally_command_results.query.runs import require_run
from vally_command_results.query.trajectories import numbered_events
from vally_command_results.recorded import items, mapping
from vally_command_results.server.artifacts import artifact_root, list_artifacts
from vally_command_results.server.charts_lines import call_strip
from vally_command_results.server.pages.page_params import TextPart, TrialPage
from vally_command_results.server.pages.reading import hidden, read, with_parameters
from vally_command_results.server.pages.text import as_text, excerpt
from vally_command_results.server.pages.timeline import KINDS, event_value, timeline
from vally_command_results.server.site import Site

TEXT_LENGTH = 8_000
EVIDENCE_LENGTH = 2_000
RAW_LENGTH = 60_000
SHOWN_TRIALS = 40


def trial_page(connection: Connection, request: Request, site: Site) -> tuple[str, Mapping[str, Any]]:
    """`/outcomes/<id>`."""
    outcome_id = request.path_params["outcome_id"]
    row = require_outcome(connection, outcome_id)
    chosen = read(TrialPage, request)
    run = require_run(connection, row.run_id)
    artifacts = list_artifacts(artifact_root(site, run.source, row.artifact_dir))
    trial = outcome_detail(connection, outcome_id, artifact_count=len(artifacts["items"]))
    calls = list_calls(connection, outcome_id, PageRequest(limit=MAX_LIMIT))["items"]
    previous, following = neighbours(connection, row, ("fail", "error"))
    trajectory = _trajectory(connection, outcome_id)
    return "trial.html", {
        "title": f"{trial['stimulus']}, trial {trial['trialIndex'] + 1}",
        "section": "runs",
        "run": run,
        "trial": trial,
        "turn_count": row.turn_count,
        "trials": trial["trials"][:SHOWN_TRIALS],
        "prompts": _prompts(trial),
        "output": excerpt(trajectory.get("output"), TEXT_LENGTH),
        "error": excerpt(trial["error"], TEXT_LENGTH),
        "timeline": timeline(_events(trajectory), show=chosen.show, find=chosen.find, page=chosen.page),
        "strip": call_strip([(item["offsetMs"], item["durationMs"], item["name"], item["success"]) for item in calls]),
        "chosen": chosen,
        "filter_hidden": hidden(request, ("show", "find", "page")),
        "at_page": lambda number: with_parameters(request, page=number),
        "artifacts": artifacts,
        "raw": _raw(connection, outcome_id),
        "failing": {"previous": previous, "next": following},
        "evidence_length": EVIDENCE_LENGTH,
        "known_kinds": KINDS,
        "artifact_link": _artifact_link,
    }


def _artifact_link(outcome_id: str, path: str) -> str:
    return f"/api/outcomes/{outcome_id}/artifacts/{quote(path.encode('utf-8', 'replace'))}"


def _prompts(trial: Mapping[str, Any]) -> list[Any]:
    turns = trial["turns"]
    if turns:
        texts = [item.get("prompt", item.get("content")) if isinstance(item, Mapping) else item for item in turns]
        return [excerpt(text, TEXT_LENGTH) for text in texts[:50]]
    return [excerpt(trial["prompt"], TEXT_LENGTH)] if trial["prompt"] else []


def _raw(connection: Connection, outcome_id: str) -> dict[str, Any]:
    """The record, indented when it is short."""
    line = raw_line(connection, outcome_id)
    if len(line) > RAW_LENGTH:
        return {"size": len(line), "text": None}
    return {"size": len(line), "text": excerpt(_indented(line), 4 * RAW_LENGTH).text}


def _indented(line: bytes) -> str:
    """A record with line breaks; as it is when it is nested too deeply for that."""
    try:
        return json.dumps(json.loads(line), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return line.decode("utf-8", "replace")


def _trajectory(connection: Connection, outcome_id: str) -> Mapping[str, Any]:
    """The recorded trajectory; empty when there is none."""
    return mapping(record_of(connection, outcome_id).get("trajectory"))


def _events(trajectory: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Its events with their places and times."""
    return numbered_events(items(trajectory.get("events")))


def text_part(connection: Connection, request: Request, _: Site) -> Response:
    """`/outcomes/<id>/text`: a long text whole, as plain text."""
    outcome_id = request.path_params["outcome_id"]
    require_outcome(connection, outcome_id)
    chosen = read(TextPart, request)
    value = _part(connection, outcome_id, chosen)
    if value is None:
        raise not_found("the trial has no such text")
    return Response(as_text(value).encode("utf-8", "replace"), media_type="text/plain; charset=utf-8")


def _part(connection: Connection, outcome_id: str, chosen: TextPart) -> Any:
    if chosen.part == "error":
        return record_of(connection, outcome_id).get("error")
    trajectory = _trajectory(connection, outcome_id)
    if chosen.part == "output":
        return trajectory.get("output")
    if chosen.part == "prompt":
        stimulus = mapping(trajectory.get("stimulus"))
        return stimulus.get("prompt") or stimulus.get("turns")
    events = _events(trajectory)
    if chosen.event >= len(events):
        return None
    event = events[chosen.event]
    data = event.get("data")
    return event_value(str(event.get("type")), data) if isinstance(data, Mapping) else None
