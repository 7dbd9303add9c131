"""Lists of outcomes, as pages and for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from vally_command_results.query.filters import OutcomeFilter, RunFilter
from vally_command_results.query.outcomes import OUTCOME_SORTS, list_outcomes, selected_outcomes
from vally_command_results.query.paging import PageRequest
from vally_command_results.query.runs import facets, list_runs, run_detail
from vally_command_results.query.shapes import outcome_document
from vally_command_results.server.pages.page_params import OutcomesPage
from vally_command_results.server.pages.reading import hidden, read, with_parameters
from vally_command_results.server.pages.rendering import link
from vally_command_results.server.pages.text import visible
from vally_command_results.server.site import Site

FIELDS = (
    "q", "evalName", "stimulus", "model", "variant", "verdict", "tag", "grader", "graderPassed", "tool", "minScore",
    "maxScore", "sort",
)  # fmt: skip
SORTS = {
    "": "as recorded",
    "score": "lowest score first",
    "-score": "highest score first",
    "-durationMs": "longest first",
    "durationMs": "shortest first",
    "-totalTokens": "most tokens first",
    "totalTokens": "fewest tokens first",
}
CSV_ROWS = 100_000
_COLUMNS = (
    "id", "runId", "evalName", "stimulus", "model", "variant", "trialIndex", "status", "verdict", "score",
    "durationMs", "turns", "toolCalls", "startedAt", "evidence", "error", "skipReason",
)  # fmt: skip


def outcomes_page(connection: Connection, request: Request, _: Site) -> Response | tuple[str, Mapping[str, Any]]:
    """`/outcomes` and `/runs/<id>/outcomes`."""
    run_id = request.path_params.get("run_id")
    run = None if run_id is None else run_detail(connection, run_id)
    chosen = read(OutcomesPage, request)
    wanted = chosen.filter(*([run_id] if run_id else []))
    if chosen.format == "csv":
        return _csv(connection, wanted, chosen)
    page = list_outcomes(connection, wanted, PageRequest(chosen.cursor, chosen.limit), chosen.sort)
    return "outcomes.html", {
        "title": "Trials" if run is None else f"Trials of {run['name']}",
        "section": "outcomes" if run is None else "runs",
        "run": run,
        "items": page["items"],
        "page": page["page"],
        "next": with_parameters(request, cursor=page["page"]["nextCursor"]),
        "csv": with_parameters(request, format="csv"),
        "facets": facets(connection),
        "fields": {name: request.query_params.get(name, "") for name in FIELDS},
        "hidden": hidden(request, FIELDS),
        "is_filtered": any(request.query_params.get(name) for name in (*FIELDS, "runId") if name != "sort"),
        "further": any(request.query_params.get(name) for name in FIELDS[4:5] + FIELDS[6:12]),
        "sorts": SORTS,
        "sorted_by": lambda key: link(request.url.path, with_parameters(request, sort=key)),
        "found_runs": _found_runs(connection, chosen) if run is None else 0,
    }


def _found_runs(connection: Connection, chosen: OutcomesPage) -> int:
    """How many runs a search would find, so that it need not be typed again there."""
    if not chosen.q:
        return 0
    return int(list_runs(connection, RunFilter(q=chosen.q), PageRequest(limit=1))["page"]["total"])


def _csv(connection: Connection, wanted: OutcomeFilter, chosen: OutcomesPage) -> Response:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for item in _all(connection, wanted, chosen.sort):
        writer.writerow([inert(item[column]) for column in _COLUMNS])
    headers = {"Content-Disposition": 'attachment; filename="trials.csv"'}
    return Response(text.getvalue().encode("utf-8", "replace"), headers=headers, media_type="text/csv; charset=utf-8")


def _all(connection: Connection, wanted: OutcomeFilter, sort: str | None) -> Iterator[Mapping[str, Any]]:
    """All outcomes of a filter in the order of the list, asked for at once."""
    keys = OUTCOME_SORTS[sort or "seq"]
    order = [(key.column.desc() if key.descending else key.column.asc()).nulls_last() for key in keys]
    for row in connection.execute(selected_outcomes(wanted).order_by(*order).limit(CSV_ROWS)):
        yield outcome_document(row)


def inert(value: object) -> object:
    """A cell that no spreadsheet takes for a formula."""
    if not isinstance(value, str):
        return value
    shown = visible(value)
    return f"'{shown}" if shown.lstrip(" \t\n")[:1] in ("=", "+", "-", "@", "|", "%") else shown
