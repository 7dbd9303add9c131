"""Pages about many runs: graders that fail most, trends, and a judged comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request

from vally_command_results.query.graders import graders_of_runs
from vally_command_results.query.metrics import METRICS
from vally_command_results.query.runs import facets
from vally_command_results.query.trends import comparison_detail, trends
from vally_command_results.recorded import items, mapping
from vally_command_results.server.charts_lines import MAX_DRAWN, interval, trend_chart
from vally_command_results.server.pages.reading import hidden, read
from vally_command_results.server.params import GradersAcross, NoParameters, Trends
from vally_command_results.server.site import Site

GRADER_FIELDS = ("evalName", "model", "since", "until")
TREND_FIELDS = ("metric", "groupBy", "evalName", "stimulus", "model", "kind", "since", "until")
SHOWN_TRIALS = 200


def graders_page(connection: Connection, request: Request, _: Site) -> tuple[str, Mapping[str, Any]]:
    """`/graders`."""
    chosen = read(GradersAcross, request)
    found = graders_of_runs(connection, chosen.filter(), chosen.limit)["graders"]
    return "graders.html", {
        "title": "Graders that fail most",
        "section": "graders",
        "graders": found,
        "chosen": chosen,
        "facets": facets(connection),
        "fields": {name: request.query_params.get(name, "") for name in GRADER_FIELDS},
        "hidden": hidden(request, GRADER_FIELDS),
        "is_filtered": any(request.query_params.get(name) for name in GRADER_FIELDS),
    }


def trends_page(connection: Connection, request: Request, _: Site) -> tuple[str, Mapping[str, Any]]:
    """`/trends`."""
    chosen = read(Trends, request)
    runs, outcomes = chosen.filters()
    document = trends(connection, runs, outcomes, metric=chosen.metric, group_by=chosen.group_by, limit=chosen.limit)
    metric = METRICS[chosen.metric]
    return "trends.html", {
        "title": "Trends",
        "section": "trends",
        "document": document,
        "picture": trend_chart(document, f"{metric.label} over runs, by {chosen.group_by}"),
        "drawn": MAX_DRAWN,
        "table": _table(document),
        "metrics": METRICS,
        "chosen": chosen,
        "facets": facets(connection),
        "fields": {name: request.query_params.get(name, "") for name in TREND_FIELDS},
        "hidden": hidden(request, TREND_FIELDS),
        "is_filtered": any(request.query_params.get(name) for name in TREND_FIELDS[2:]),
    }


def _table(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row per run, the newest first, with the point of each series."""
    runs = {
        point["runId"]: (point["startedAt"] or "", point["partial"])
        for item in document["series"]
        for point in item["points"]
    }
    by_series = [{point["runId"]: point for point in item["points"]} for item in document["series"]]
    ordered = sorted(runs, key=lambda run_id: (runs[run_id][0], run_id), reverse=True)
    return [
        {
            "id": run_id,
            "startedAt": runs[run_id][0] or None,
            "partial": runs[run_id][1],
            "points": [points.get(run_id) for points in by_series],
        }
        for run_id in ordered
    ]


def comparison_page(connection: Connection, request: Request, _: Site) -> tuple[str, Mapping[str, Any]]:
    """`/comparisons/<id>`."""
    read(NoParameters, request)
    item = comparison_detail(connection, request.path_params["comparison_id"])
    record = mapping(item["record"])
    return "comparison.html", {
        "title": f"{item['treatment'] or 'treatment'} against {item['baseline'] or 'baseline'}",
        "section": "runs",
        "item": item,
        "summary": mapping(record.get("summary")),
        "stimuli": _stimuli(record.get("stimuli")),
        "picture": interval(item["meanScore"], item["ciLow"], item["ciHigh"]),
        "unmatched": [
            (word, [str(name) for name in names])
            for word, key in (("baseline", "unmatchedBaseline"), ("treatment", "unmatchedTreatment"))
            if (names := items(record.get(key)))
        ],
    }


def _stimuli(value: object) -> list[dict[str, Any]]:
    found = []
    for item in items(value):
        if isinstance(item, Mapping):
            listed = [trial for trial in items(item.get("trials")) if isinstance(trial, Mapping)]
            mean = item.get("meanScore")
            found.append(
                {
                    "name": item.get("stimulusName"),
                    "mean": mean if isinstance(mean, (int, float)) else None,
                    "trials": [_trial(trial) for trial in listed[:SHOWN_TRIALS]],
                    "more": max(0, len(listed) - SHOWN_TRIALS),
                }
            )
    return found


def _trial(trial: Mapping[str, Any]) -> dict[str, Any]:
    score, index = trial.get("score"), trial.get("trialIndex")
    return {
        "index": index if isinstance(index, int) else None,
        "winner": trial.get("winner"),
        "magnitude": trial.get("magnitude"),
        "score": score if isinstance(score, (int, float)) else None,
        "evidence": trial.get("evidence"),
        "errored": trial.get("errored") is True,
        "baseline": trial.get("baselinePassed"),
        "treatment": trial.get("treatmentPassed"),
    }
