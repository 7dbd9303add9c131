"""`report.md`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vally import (
    fixed,
    markdown_cell,
    markdown_head,
    markdown_name,
    markdown_row,
    percent,
    plural,
    report_duration,
    signed,
    two_decimals,
)
from vally_command_experiment.figures import Cell
from vally_command_experiment.report_data import Arm, Report, ScoreRow

LEFT, RIGHT = "---", "---:"


def markdown_report(report: Report) -> str:
    """The whole report; sections without content are left out."""
    sections = [
        [f"# Experiment: {markdown_name(report.document['name'])}", "", _verdict(report)],
        list(_variants(report)),
        list(_contaminated(report)),
        list(_scores(report)),
        list(_comparisons(report)),
        list(_problems(report)),
        list(_plan(report)),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _verdict(report: Report) -> str:
    document = report.document
    totals = document["totals"]
    word = "✅ COMPLETED" if totals["trials"] else "⏭️ NOTHING RUN"
    if document["partial"]:
        word = f"⚠️ PARTIAL ({document['stopReason'] or 'trials missing'})"
    parts = [
        f"**{word}**",
        f"{plural(len(document['variants']), 'variant')} × {plural(report.evals, 'eval')}",
        plural(totals["trials"], "trial"),
        plural(totals["errors"], "error"),
        report_duration(document["durationMs"]),
        f"run {markdown_name(document['runId'])}",
    ]
    return " · ".join(parts)


def _variants(report: Report) -> Iterator[str]:
    if not report.arms:
        return
    names = ("Evals passed", "Mean score", "Pass rate", "Tokens", "Turns", "Duration")
    yield from markdown_head({"Variant": LEFT, "Model": LEFT, **dict.fromkeys(names, RIGHT), "Result": LEFT})
    for arm in report.arms:
        yield markdown_row(
            markdown_cell(arm.label),
            markdown_cell(arm.model),
            f"{arm.evals_passed}/{arm.evals}",
            _number(arm.mean_score),
            "–" if arm.pass_rate is None else percent(arm.pass_rate),
            "–" if arm.tokens is None else f"{int(fixed(arm.tokens, 0)):,}",
            "–" if arm.turns is None else fixed(arm.turns, 1),
            "–" if arm.duration_ms is None else report_duration(arm.duration_ms),
            _result(report, arm),
        )


def _result(report: Report, arm: Arm) -> str:
    if any(item["variant"] == arm.variant for item in report.document["contaminated"]):
        return "⚠️ CONTAMINATED"
    if not arm.is_graded:
        return "⏭️ not graded"
    return "✅ PASS" if arm.passed else "❌ FAIL"


def _number(value: float | None) -> str:
    return "–" if value is None else two_decimals(value)


def _contaminated(report: Report) -> Iterator[str]:
    items = report.document["contaminated"]
    if not items:
        return
    yield "## Contaminated arms"
    yield ""
    for item in items:
        arm = f"{item['variant']}, {item['evalFile']}, {item['model']}"
        yield f"- {markdown_cell(arm)}: its agent had {markdown_cell('; '.join(item['reasons']))}"


def _scores(report: Report) -> Iterator[str]:
    rows = report.score_rows()
    if not rows:
        return
    several = len({arm.model for arm in report.arms}) > 1
    labels = [f"{arm.variant} ({arm.model})" if several else arm.variant for arm in report.arms]
    baseline = report.baseline_arm
    others = [place for place in range(len(labels)) if baseline is not None and place != baseline]
    yield "## Scores"
    yield ""
    columns = [*labels, *(f"Δ {labels[place]}" for place in others)]
    yield markdown_row("Eval / stimulus", *map(markdown_cell, columns))
    yield markdown_row(LEFT, *[RIGHT] * len(columns))
    for row in rows:
        deltas = [_delta(row, place, baseline) for place in others]
        yield markdown_row(markdown_cell(row.name), *map(_cell, row.cells), *deltas)


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    errors = f", {plural(cell.errors, 'error')}" if cell.errors else ""
    if cell.mean_score is None:
        return f"–{errors.removeprefix(',')}"
    return f"{two_decimals(cell.mean_score)} ({cell.passed}/{cell.verdicts}{errors})"


def _delta(row: ScoreRow, place: int, baseline: int | None) -> str:
    delta = None if baseline is None else row.delta(place, baseline)
    return "–" if delta is None else signed(delta, 2)


def _comparisons(report: Report) -> Iterator[str]:
    if not report.comparisons:
        return
    judges = ", ".join(map(markdown_name, report.judges))
    yield f"## Comparison (judge {judges})" if judges else "## Comparison"
    yield ""
    names = ("Mean", "95% CI", "W/T/L", "Errored", "Unmatched")
    yield from markdown_head({"Variant": LEFT, "Eval": LEFT, **dict.fromkeys(names, RIGHT), "Verdict": LEFT})
    for item in report.comparisons:
        yield _comparison(item)


def _comparison(item: Mapping[str, Any]) -> str:
    summary = item["summary"]
    low, high = summary["ciLow"], summary["ciHigh"]
    return markdown_row(
        markdown_cell(item["treatment"]),
        markdown_cell(item["evalFile"]),
        signed(summary["meanScore"], 2),
        "–" if low is None else f"[{signed(low, 2)}, {signed(high, 2)}]",
        f"{summary['wins']}/{summary['ties']}/{summary['losses']}",
        str(summary["erroredCount"]),
        str(len(item["unmatchedBaseline"]) + len(item["unmatchedTreatment"])),
        comparison_words(summary),
    )


def comparison_words(summary: Mapping[str, Any]) -> str:
    """What the interval of a comparison allows to say."""
    low, high = summary["ciLow"], summary["ciHigh"]
    if low is None or high is None:
        return "Inconclusive"
    if low > 0:
        return "Credibly better"
    if high < 0:
        return "Credibly worse"
    underpowered = (summary.get("stats") or {}).get("signTest", {}).get("underpowered")
    return "No credible difference" + (" (underpowered)" if underpowered else "")


def _problems(report: Report) -> Iterator[str]:
    found = list(report.problems())
    if not found:
        return
    yield "## Failures and errors"
    yield ""
    for stimulus, arm, problem in found:
        yield f"- **{markdown_cell(stimulus)}** in {markdown_cell(arm)}: {markdown_cell(problem)}"


def _plan(report: Report) -> Iterator[str]:
    yield "## Plan"
    yield ""
    columns = {"Variant": LEFT, "Eval": LEFT, "Model": LEFT, "Runs": RIGHT, "Eval hash": LEFT, "Config hash": LEFT}
    yield from markdown_head(columns)
    for item in report.plan:
        yield markdown_row(
            markdown_cell(item["variant"]),
            markdown_cell(item["evalFile"]),
            markdown_cell(item["model"]),
            str(item["runs"]),
            str(item["evalHash"]),
            str(item["configHash"]),
        )
