"""The summary of the step: verdict, evals, and the stimuli that fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from vally import (
    MAIN_VARIANT,
    eval_figures,
    eval_table,
    markdown_cell,
    markdown_head,
    markdown_name,
    markdown_row,
    run_verdict,
    stimulus_stats,
)

if TYPE_CHECKING:
    from vally import EvalSummary, RunStart, RunSummary
    from vally_reporter_github.findings import Findings

_RESULTS = {"fail": "❌ FAIL", "error": "❌ ERROR"}
_COLUMNS = {"Eval": "---", "Stimulus": "---", "Trials passed": "---:", "First failing grader": "---", "Result": "---"}


def summary_text(start: RunStart, summary: RunSummary, findings: Findings) -> str:
    """The Markdown of a run."""
    return "".join(f"{line}\n" for line in _lines(start, summary, findings))


def _lines(start: RunStart, summary: RunSummary, findings: Findings) -> Iterator[str]:
    yield "## Vally eval results"
    yield ""
    yield run_verdict(summary)
    yield ""
    if summary.evals:
        yield from eval_table(summary.evals, skip_grade=start.options.skip_grade)
        yield ""
    for item in summary.evals:
        explained = [markdown_cell(item.reason), *eval_figures(item)]
        if not item.passed or len(explained) > 1:
            yield f"- {_label(item)}: {' · '.join(fact for fact in explained if fact)}"
    yield ""
    failing = list(_failing(start, summary, findings))
    if failing:
        yield "### Failing stimuli"
        yield ""
        yield from markdown_head(_COLUMNS)
        yield from failing
        yield ""


def _label(item: EvalSummary) -> str:
    variant = "" if item.variant == MAIN_VARIANT else f" / {markdown_name(item.variant)}"
    return f"{markdown_name(item.name)}{variant} ({markdown_name(item.model)})"


def _failing(start: RunStart, summary: RunSummary, findings: Findings) -> Iterator[str]:
    indices = {(item.eval_file_path, item.variant, item.model): item.index for item in start.evals}
    errors = {error.key: error.text for error in reversed(findings.errors())}
    for item in summary.evals:
        index = indices.get((item.eval_file_path, item.variant, item.model), -1)
        for stats in stimulus_stats(item):
            if stats.get("verdict") in _RESULTS:
                key = (index, str(stats.get("name")))
                yield _row(_label(item), stats, findings.why(key) or errors.get(key, ""))


def _row(label: str, stats: Any, why: str) -> str:
    return markdown_row(
        label,
        markdown_name(str(stats.get("name"))),
        f"{stats.get('passed') or 0}/{stats.get('trials') or 0}",
        markdown_cell(why),
        _RESULTS[stats["verdict"]],
    )
