"""The list of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request

from vally_command_results.query.filters import RunFilter
from vally_command_results.query.paging import PageRequest
from vally_command_results.query.runs import facets, list_runs
from vally_command_results.server.charts import sparkline
from vally_command_results.server.pages import numbers
from vally_command_results.server.pages.page_params import RunsPage
from vally_command_results.server.pages.reading import hidden, read, with_parameters
from vally_command_results.server.pages.rendering import link
from vally_command_results.server.site import Site

NEWEST = 20
SORTS = {
    "-startedAt": "newest first",
    "startedAt": "oldest first",
    "name": "name",
    "-passRate": "pass rate, highest first",
    "passRate": "pass rate, lowest first",
    "-durationMs": "longest first",
}
FIELDS = ("q", "evalName", "model", "kind", "verdict", "since", "until", "sort")
_ORDER = ("error", "fail", "incomplete", "partial", "pass")


def runs_page(connection: Connection, request: Request, _: Site) -> tuple[str, Mapping[str, Any]]:
    """`/`."""
    chosen = read(RunsPage, request)
    page = list_runs(connection, chosen.filter(), PageRequest(chosen.cursor, chosen.limit), chosen.sort)
    newest = list_runs(connection, RunFilter(), PageRequest(limit=NEWEST))
    return "runs.html", {
        "title": "Runs",
        "section": "runs",
        "entries": list(_entries(page["items"], request, chosen.open)),
        "page": page["page"],
        "next": with_parameters(request, cursor=page["page"]["nextCursor"]),
        "cards": _cards(newest["items"], newest["page"]["total"]),
        "facets": facets(connection),
        "chosen": chosen,
        "fields": {name: request.query_params.get(name, "") for name in FIELDS},
        "hidden": [pair for pair in hidden(request, FIELDS) if pair[0] != "open"],
        "is_filtered": any(request.query_params.get(name) for name in FIELDS if name != "sort"),
        "sorts": SORTS,
        "sorted_by": lambda key: link("/", with_parameters(request, sort=key)),
    }


def _cards(newest: Sequence[Mapping[str, Any]], total: int) -> list[dict[str, Any]]:
    passed, judged = _passed(newest)
    errors = sum(item["errorCount"] for item in newest)
    rates = [item["passRate"] for item in reversed(newest) if item["passRate"] is not None]
    outcomes = sum(item["outcomeCount"] for item in newest)
    of = f"newest {len(newest)} runs" if total > len(newest) else "all runs"
    return [
        {"label": "Runs", "value": numbers.whole(total), "note": "in this store"},
        {"label": "Trials", "value": numbers.whole(outcomes), "note": of},
        {
            "label": "Pass rate",
            "value": numbers.ratio(passed / judged if judged else None),
            "note": f"{passed} of {judged} graded trials, {of}",
            "spark": sparkline(rates, f"Pass rate of the {len(rates)} newest runs"),
        },
        {
            "label": "Errors",
            "value": numbers.whole(errors),
            "note": f"trials without a verdict, {of}",
            "kind": "error" if errors else "",
        },
    ]


def _passed(items: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    listed = list(items)
    passed = sum(item["passCount"] for item in listed)
    return passed, passed + sum(item["failCount"] for item in listed)


def _entries(items: Sequence[Mapping[str, Any]], request: Request, opened: Sequence[str]) -> Iterable[dict[str, Any]]:
    """Rows of the table: runs, and experiments with the runs of their variants."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for item in items:
        if item["group"] is not None:
            groups.setdefault(item["group"], []).append(item)
    for item in items:
        members = groups.get(item["group"] or "", [])
        if len(members) < 2:
            yield {"run": item, "members": [], "is_open": False}
        elif members[0] is item:
            yield _group(item["group"], members, request, item["group"] in opened)


def _group(group: str, members: Sequence[Mapping[str, Any]], request: Request, is_open: bool) -> dict[str, Any]:
    ordered = sorted(members, key=lambda item: (not item["isBaseline"], item["variant"] or ""))
    passed, judged = _passed(members)
    # A variant that was not selected says nothing about the others.
    ran = [item for item in members if item["outcomeCount"] or not item["complete"]]
    scores = [item["meanScore"] for item in members if item["meanScore"] is not None]
    summed = {
        name: sum(item[name] or 0 for item in members)
        for name in ("outcomeCount", "passCount", "failCount", "errorCount", "skippedCount", "totalTokens")
    }
    run = {
        **members[0],
        **summed,
        "name": members[0]["experiment"] or "experiment",
        "verdict": min((item["verdict"] for item in ran or members), key=_ORDER.index),
        "passRate": passed / judged if judged else None,
        "meanScore": sum(scores) / len(scores) if scores else None,
        "durationMs": max((item["durationMs"] or 0 for item in members), default=None),
        "models": sorted({model for item in members for model in item["models"]}),
    }
    others = [name for name in request.query_params.getlist("open") if name != group]
    kept = with_parameters(request, open=None)
    unfolded = others if is_open else [*others, group]
    return {
        "run": run,
        "members": ordered,
        "is_open": is_open,
        "toggle": [*kept, *(("open", name) for name in unfolded)],
        "compare": [("runs", item["id"]) for item in ordered[:6]],
    }
