"""The sums of a run over its outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VERDICTS = ("pass", "fail", "error", "skipped", "ungraded")


class OutcomeTally:
    """Counts outcome rows as they pass."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(VERDICTS, 0)
        self._scores = self._scored = self._tokens = 0.0
        self._costs: dict[str, float] = {}
        self._models: set[str] = set()
        self._stimuli: set[tuple[str | None, str, str]] = set()

    def add(self, row: Mapping[str, Any], evaluation: Mapping[str, Any]) -> None:
        """Count one outcome. Rows of evals are per model, a stimulus that several models ran is one stimulus."""
        self._counts[row["verdict"]] += 1
        if row["verdict"] in ("pass", "fail") and row["score"] is not None:
            self._scores += row["score"]
            self._scored += 1
        self._tokens += row["total_tokens"] or 0
        if row["cost_unit"] is not None:
            self._costs[row["cost_unit"]] = self._costs.get(row["cost_unit"], 0.0) + row["cost_amount"]
        if row["model"] is not None:
            self._models.add(row["model"])
        self._stimuli.add((evaluation["file_path"], evaluation["name"], row["stimulus"]))

    def counts(self) -> dict[str, int]:
        """Outcomes by verdict, those that occur."""
        return {name: count for name, count in self._counts.items() if count}

    def run_columns(self) -> dict[str, Any]:
        """The columns of the run that depend on its outcomes."""
        passed, failed = self._counts["pass"], self._counts["fail"]
        return {
            "outcome_count": sum(self._counts.values()),
            "pass_count": passed,
            "fail_count": failed,
            "error_count": self._counts["error"],
            "skipped_count": self._counts["skipped"],
            "stimulus_count": len(self._stimuli),
            "pass_rate": passed / (passed + failed) if passed + failed else None,
            "mean_score": self._scores / self._scored if self._scored else None,
            "total_tokens": int(self._tokens),
            "cost": [{"unit": unit, "amount": amount} for unit, amount in sorted(self._costs.items())],
            "models": sorted(self._models),
        }
