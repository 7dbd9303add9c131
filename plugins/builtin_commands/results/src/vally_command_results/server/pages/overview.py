"""One run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request

from vally_command_results.query.filters import OutcomeFilter
from vally_command_results.query.graders import graders_of_run
from vally_command_results.query.matrix import matrix
from vally_command_results.query.metrics import METRICS
from vally_command_results.query.outcomes import list_outcomes
from vally_command_results.query.paging import PageRequest
from vally_command_results.query.runs import facets, run_detail
from vally_command_results.query.summaries import distribution, ranking, tools
from vally_command_results.server.charts import Chart
from vally_command_results.server.charts_run import bars, histogram
from vally_command_results.server.pages.matrix_view import Targets, matrix_view
from vally_command_results.server.pages.page_params import OverviewPage
from vally_command_results.server.pages.reading import hidden, read
from vally_command_results.server.site import Site

CHARTS = {
    "duration_ms": "Duration",
    "wall_time_ms": "Agent time",
    "total_tokens": "Tokens",
    "turns": "Turns",
    "tool_calls": "Tool calls",
    "score": "Score",
}
GRADERS = 10
FLAKY = 12
CONFIG_LENGTH = 100_000


def overview_page(connection: Connection, request: Request, _: Site) -> tuple[str, Mapping[str, Any]]:
    """`/runs/<id>`."""
    run_id = request.path_params["run_id"]
    run = run_detail(connection, run_id)
    chosen = read(OverviewPage, request)
    scores = matrix(
        connection,
        run_id,
        metric=chosen.metric,
        rows=chosen.rows,
        columns=chosen.columns,
        chosen=chosen.filter(),
    )
    values = distribution(connection, run_id, metric=chosen.chart, group_by=chosen.by)
    failing = graders_of_run(connection, run_id, OutcomeFilter())["graders"]
    return "overview.html", {
        "title": f"Run {run['name']}",
        "section": "runs",
        "run": run,
        "matrix": matrix_view(scores, Targets(run_id, run["siblings"], chosen)),
        "metrics": METRICS,
        "chosen": chosen,
        "row_choices": _row_choices(connection),
        "histogram": histogram(values, f"{CHARTS[chosen.chart]} of trials", values["metric"]["unit"], chosen.by),
        "charts": CHARTS,
        "cost": _cost_chart(connection, run_id),
        "ranking": ranking(connection, run_id)["models"],
        "graders": [item for item in failing if item["failCount"] or item["errorCount"]][:GRADERS],
        "grader_count": len(failing),
        "tools": tools(connection, run_id, OutcomeFilter())["tools"],
        "flaky": _flaky(connection, run_id),
        "config": _config(run["config"]),
        "matrix_hidden": hidden(request, ("metric", "rows", "columns")),
        "chart_hidden": hidden(request, ("chart", "by")),
    }


def _row_choices(connection: Connection) -> dict[str, str]:
    choices = {"stimulus": "stimulus", "eval": "eval", "grader": "grader", "graderType": "grader type"}
    return choices | {f"tag:{key}": f"tag {key}" for key in list(facets(connection)["tags"])[:30]}


def _cost_chart(connection: Connection, run_id: str) -> Chart | None:
    """What the stimuli cost, in the unit that the run reports; tokens where none is known."""
    for metric in ("cost_usd", "cost_aiu", "total_tokens_sum"):
        document = matrix(connection, run_id, metric=metric)
        several = len(document["columns"]) > 1
        names = {row["key"]: row["label"] for row in document["rows"]}
        entries = [
            (f"{names[cell['row']]} · {cell['column']}" if several else names[cell["row"]], float(cell["value"]))
            for cell in document["cells"]
            if cell["value"]
        ]
        if entries:
            what = "Tokens" if metric == "total_tokens_sum" else "Cost"
            return bars(f"{what} by stimulus", entries, METRICS[metric].unit, "Stimulus")
    return None


def _flaky(connection: Connection, run_id: str) -> dict[str, Any]:
    """Stimuli with passed and failed trials, each with its trials."""
    document = matrix(connection, run_id)
    names = {row["key"]: row for row in document["rows"]}
    cells = [cell for cell in document["cells"] if "flaky" in cell["flags"]]
    shown = sorted(cells, key=lambda cell: (cell["value"], cell["row"], cell["column"]))[:FLAKY]
    several = [cell for cell in document["cells"] if cell["outcomeCount"] > 1]
    wanted = tuple({names[cell["row"]]["label"] for cell in shown})
    trials: dict[tuple[str, str], list[Any]] = {}
    if wanted:
        chosen = OutcomeFilter(run_id=(run_id,), stimulus=wanted)
        for item in list_outcomes(connection, chosen, PageRequest(limit=1000))["items"]:
            key = (f"{item['evalName']}::{item['stimulus']}", item["model"] or "(none)")
            trials.setdefault(key, []).append(item)
    rows = [
        {**names[cell["row"]], **cell, "trials": trials.get((cell["row"], cell["column"]), [])[:40]} for cell in shown
    ]
    return {"rows": rows, "count": len(cells), "of": len(several)}


def _config(config: Mapping[str, Any]) -> str:
    given = {key: value for key, value in config.items() if value is not None}
    if not given:
        return ""
    # PostgreSQL does not keep the order of keys, so every store shows them sorted.
    shown = json.dumps(given, ensure_ascii=False, indent=2, sort_keys=True)
    return shown if len(shown) <= CONFIG_LENGTH else f"{shown[:CONFIG_LENGTH]}\n…"
