"""What reports call a run and its evals, so that none says of what nobody measured that it passed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from vally.model.results import EvalSummary, RunSummary

RunWord = Literal["partial", "skipped", "passed", "failed"]


def is_ungraded(item: EvalSummary) -> bool:
    """Whether nothing speaks against an eval only because nothing of it was graded."""
    return item.passed and not item.stimuli_run


def run_word(summary: RunSummary) -> RunWord:
    """The word for a run: `skipped` when nothing was run, or nothing of what ran was graded."""
    if summary.partial:
        return "partial"
    if not summary.totals.trials or all(is_ungraded(item) for item in summary.evals):
        return "skipped"
    return "passed" if summary.passed else "failed"


def counted_evals(summary: RunSummary) -> str:
    """How many evals passed, or that there was nothing to count."""
    if run_word(summary) == "skipped":
        return "nothing was graded" if summary.totals.trials else "nothing was run"
    ungraded = sum(is_ungraded(item) for item in summary.evals)
    passed = sum(item.passed for item in summary.evals) - ungraded
    return f"{passed} of {len(summary.evals)} evals passed" + (f", {ungraded} not graded" if ungraded else "")
