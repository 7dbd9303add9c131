"""The score matrix as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vally_command_results.server.pages import numbers
from vally_command_results.server.pages.page_params import OverviewPage
from vally_command_results.server.pages.rendering import link

SHOWN_ROWS = 300
STEPS = 10
FLAGS = {
    "flaky": ("≈", "flaky"),
    "errors": ("⚠", "errors"),
    "partial": ("◐", "fewer trials than planned"),
    "low_count": ("¹", "one trial"),
}


@dataclass(frozen=True, slots=True)
class Targets:
    """Where the outcomes behind a cell are listed; `siblings` are the runs of the same experiment."""

    run_id: str
    siblings: Sequence[Mapping[str, Any]]
    chosen: OverviewPage

    def address(self, row: Mapping[str, Any], column: Mapping[str, Any]) -> str | None:
        """The list of a cell; None for graders by type, which outcomes cannot be filtered by."""
        rows, columns = self.chosen.rows, self.chosen.columns
        if rows == "graderType":
            return None
        parameters = [*_of_row(rows, row)]
        if columns == "variant" and self.siblings:
            runs = [item["id"] for item in self.siblings if (item["variant"] or "(none)") == column["key"]]
            return link("/outcomes", [*(("runId", run_id) for run_id in runs), *parameters])
        key = {"model": "model", "variant": "variant", "eval": "evalName"}[columns]
        if column["key"] != "(none)":
            parameters.append((key, column["key"]))
        return link(f"/runs/{self.run_id}/outcomes", parameters)


def _of_row(rows: str, row: Mapping[str, Any]) -> list[tuple[str, str]]:
    if rows == "stimulus":
        return [("evalName", row["group"]), ("stimulus", row["label"])]
    if rows.startswith("tag:"):
        return [("tag", f"{rows.removeprefix('tag:')}:{row['label']}")]
    return [("evalName" if rows == "eval" else "grader", row["label"])]


def matrix_view(document: Mapping[str, Any], targets: Targets) -> dict[str, Any]:
    """Rows with a cell for each column; `shade` runs from 0 (worst) to 10 (best), None without a direction."""
    metric = document["metric"]
    values = [cell["value"] for cell in document["cells"] if cell["value"] is not None]
    bounds = (0.0, 1.0) if metric["unit"] == "ratio" else (min(values, default=0.0), max(values, default=0.0))
    cells = {(cell["row"], cell["column"]): cell for cell in document["cells"]}
    rows = []
    for row in document["rows"][:SHOWN_ROWS]:
        shown = [
            _cell(cells.get((row["key"], column["key"])), metric, bounds, targets.address(row, column))
            for column in document["columns"]
        ]
        rows.append({**row, "cells": shown})
    used = {flag for cell in document["cells"] for flag in cell["flags"]}
    return {
        "columns": document["columns"],
        "rows": rows,
        "metric": metric,
        "truncated": document["truncated"] or len(document["rows"]) > SHOWN_ROWS,
        "total": len(document["rows"]),
        "legend": [FLAGS[flag] for flag in FLAGS if flag in used],
        "is_shaded": metric["direction"] != "neutral",
    }


def _cell(
    cell: Mapping[str, Any] | None, metric: Mapping[str, Any], bounds: tuple[float, float], address: str | None
) -> dict[str, Any] | None:
    if cell is None:
        return None
    return {
        "text": numbers.measured(cell["value"], metric["unit"]),
        "count": cell["outcomeCount"],
        "shade": _shade(cell["value"], metric["direction"], bounds),
        "flags": [FLAGS[flag] for flag in cell["flags"] if flag in FLAGS],
        "href": address,
    }


def _shade(value: float | None, direction: str, bounds: tuple[float, float]) -> int | None:
    if value is None or direction == "neutral":
        return None
    low, high = bounds
    share = (value - low) / (high - low) if high > low else 1.0
    share = min(1.0, max(0.0, share))
    return round(STEPS * (share if direction == "higher_is_better" else 1 - share))
