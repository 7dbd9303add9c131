"""Runs side by side, and two trials side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request

from vally_command_results.query.comparing import compare_runs
from vally_command_results.query.filters import RunFilter
from vally_command_results.query.metrics import METRICS
from vally_command_results.query.outcomes import outcome_detail
from vally_command_results.query.paging import PageRequest
from vally_command_results.query.runs import list_runs, require_run
from vally_command_results.query.shapes import run_document
from vally_command_results.query.trends import list_comparisons
from vally_command_results.server.pages.page_params import ComparePage, SideBySide
from vally_command_results.server.pages.reading import hidden, read, with_parameters
from vally_command_results.server.pages.text import excerpt
from vally_command_results.server.site import Site

SHOWN_ROWS = 500
OUTPUT_LENGTH = 20_000
OFFERED = 60
CHANGES = {
    "fixed": ("✔", "fixed"),
    "broken": ("✘", "broken"),
    "improved": ("▲", "improved"),
    "worse": ("▼", "worse"),
    "same": ("=", "same"),
}


def compare_page(connection: Connection, request: Request, _: Site) -> tuple[str, Mapping[str, Any]]:
    """`/compare`; without runs it offers some."""
    chosen = read(ComparePage, request)
    if not chosen.runs:
        offered = list_runs(connection, RunFilter(), PageRequest(limit=OFFERED))["items"]
        return "compare_choice.html", {"title": "Compare runs", "section": "compare", "runs": offered}
    ids = list(dict.fromkeys(chosen.runs))
    if chosen.oldest_first and len(ids) > 1:
        started = {run_id: require_run(connection, run_id).started_at or "" for run_id in ids}
        ids.sort(key=lambda run_id: (started[run_id], run_id))
    document = compare_runs(
        connection, ids, metric=chosen.metric, eval_names=chosen.eval_name, only_changed=chosen.only_changed
    )
    rows = [require_run(connection, run_id) for run_id in ids]
    groups = sorted({row.group_id for row in rows if row.group_id is not None})
    return "compare.html", {
        "title": "Compare runs",
        "section": "compare",
        "document": document,
        "rows": document["rows"][:SHOWN_ROWS],
        "more": max(0, len(document["rows"]) - SHOWN_ROWS),
        "runs": [run_document(row) for row in rows],
        "ids": ids,
        "metrics": METRICS,
        "chosen": chosen,
        "changes": CHANGES,
        "hidden": hidden(request, ("metric", "onlyChanged", "runs", "oldestFirst")),
        "rebased": lambda run_id: _rebased(request, ids, run_id),
        "judged": _judged(connection, groups, rows),
    }


def _rebased(request: Request, ids: Sequence[str], base: str) -> list[tuple[str, Any]]:
    kept = with_parameters(request, runs=None, oldestFirst=None)
    return [*(("runs", run_id) for run_id in (base, *(item for item in ids if item != base))), *kept]


def _judged(connection: Connection, groups: Sequence[str], rows: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Stored comparisons of the variants that are shown."""
    if not groups:
        return []
    variants = {row.variant for row in rows}
    found = list_comparisons(connection, groups, PageRequest(limit=200))["items"]
    return [item for item in found if item["baseline"] in variants and item["treatment"] in variants]


def side_by_side_page(connection: Connection, request: Request, _: Site) -> tuple[str, Mapping[str, Any]]:
    """`/compare/outcomes`."""
    chosen = read(SideBySide, request)
    trials = [outcome_detail(connection, outcome_id) for outcome_id in (chosen.left, chosen.right)]
    sides = [
        {
            "trial": trial,
            "run": require_run(connection, trial["runId"]),
            "output": excerpt(trial["output"], OUTPUT_LENGTH),
        }
        for trial in trials
    ]
    return "side_by_side.html", {
        "title": "Two trials side by side",
        "section": "compare",
        "sides": sides,
        "graders": _paired(*(trial["graders"] for trial in trials)),
        "swapped": {"left": chosen.right, "right": chosen.left},
    }


def _paired(left: Sequence[Mapping[str, Any]], right: Sequence[Mapping[str, Any]]) -> list[tuple[Any, Any]]:
    """Graders of the same name and type beside each other; repeated ones in their order."""
    waiting: dict[tuple[str, Any], list[Mapping[str, Any]]] = {}
    for item in right:
        waiting.setdefault((item["name"], item["graderType"]), []).append(item)
    pairs: list[tuple[Any, Any]] = []
    for item in left:
        same = waiting.get((item["name"], item["graderType"]))
        pairs.append((item, same.pop(0) if same else None))
    return [*pairs, *((None, item) for items in waiting.values() for item in items)]
