"""Files of comparison records into a store."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from sqlalchemy import insert, select

from vally import ReadProblem, canonical_json, read_lines, timestamp
from vally_command_results.importing.finding import FoundComparisons, experiment_files
from vally_command_results.importing.values import clean, real, text, whole
from vally_command_results.recorded import mapping
from vally_command_results.store import schema
from vally_command_results.store.opening import Store, count_change


def import_comparisons(store: Store, found: FoundComparisons) -> tuple[int, list[str]]:
    """Import the comparisons that are not there yet; returns their number and what was wrong with lines."""
    problems: list[ReadProblem] = []
    head = experiment_files(found.path.parent).head
    with found.path.open("rb") as file:
        rows = [_row(line.record, found, head) for line in read_lines(file, problems) if _is_comparison(line.record)]
    warnings = [f"{found.source}: line {problem.line}: {problem.message}" for problem in problems]
    with store.writing(found.source) as connection:
        known = set(connection.scalars(select(schema.comparisons.c.id)))
        new = {row["id"]: row for row in rows if row["id"] not in known}
        if new:
            connection.execute(insert(schema.comparisons), list(new.values()))
            count_change(connection)
    return len(new), warnings


def _is_comparison(record: Mapping[str, Any]) -> bool:
    return record.get("type") == "comparison" and isinstance(record.get("summary"), dict)


def _row(record: Mapping[str, Any], found: FoundComparisons, head: Mapping[str, Any]) -> dict[str, Any]:
    summary = mapping(record.get("summary"))
    return {
        "id": _digest(record),
        "group_id": text(head.get("runId")),
        "experiment_name": text(record.get("experimentName")),
        "baseline": text(record.get("baseline")),
        "treatment": text(record.get("treatment")),
        "eval_file": text(record.get("evalFile")),
        "model": text(record.get("model")),
        "trial_count": whole(summary.get("trialCount")) or 0,
        "errored_count": whole(summary.get("erroredCount")) or 0,
        "mean_score": real(summary.get("meanScore")),
        "ci_low": real(summary.get("ciLow")),
        "ci_high": real(summary.get("ciHigh")),
        "win_rate": real(summary.get("winRate")),
        "record": clean(record),
        "source": str(text(found.source)),
        "imported_at": timestamp(),
    }


def _digest(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(dict(record)).encode("utf-8", "replace")).hexdigest()[:32]
