"""What `vally compare` adds to the summary of a step in GitHub Actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vally import append_step_summary, markdown_cell, markdown_head, markdown_name, markdown_row, signed
from vally_command_compare.wording import closing_words

LEFT, RIGHT = "---", "---:"
DASH = "–"


def add_to_step_summary(
    records: Sequence[Mapping[str, Any]], judges: Sequence[str], environ: Mapping[str, str], min_effect: float
) -> str | None:
    """Append a table of the comparisons where a workflow asks for one; returns what went wrong, or None."""
    path = environ.get("GITHUB_STEP_SUMMARY")
    if environ.get("GITHUB_ACTIONS") != "true" or not path or not records:
        return None
    return append_step_summary(path, summary_text(records, judges, min_effect))


def summary_text(records: Sequence[Mapping[str, Any]], judges: Sequence[str], min_effect: float) -> str:
    """The table with its heading; `judges` are the models that judged."""
    names = ("Mean", "95% CI", "W/T/L", "Errored", "Unmatched")
    columns = dict.fromkeys(("Baseline", "Treatment", "Eval"), LEFT) | dict.fromkeys(names, RIGHT)
    named = ", ".join(map(markdown_name, dict.fromkeys(judges)))
    lines = [f"## Comparison (judge {named})", "", *markdown_head({**columns, "Verdict": LEFT})]
    return "\n".join([*lines, *(_row(record, min_effect) for record in records), "", ""])


def _row(record: Mapping[str, Any], min_effect: float) -> str:
    summary = record["summary"]
    low, high = summary["ciLow"], summary["ciHigh"]
    return markdown_row(
        markdown_cell(record["baseline"]),
        markdown_cell(record["treatment"]),
        markdown_cell(record.get("evalFile") or DASH),
        signed(summary["meanScore"], 2) if summary["trialCount"] else DASH,
        DASH if low is None or high is None else f"[{signed(low, 2)}, {signed(high, 2)}]",
        f"{summary['wins']}/{summary['ties']}/{summary['losses']}",
        str(summary["erroredCount"]),
        str(len(record["unmatchedBaseline"]) + len(record["unmatchedTreatment"])),
        closing_words(summary, min_effect),
    )
