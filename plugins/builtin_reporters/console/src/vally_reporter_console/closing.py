"""The summary of a run: one line per eval, and the last line with the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from vally_reporter_console.style import Style, duration, one_line, plural

if TYPE_CHECKING:
    from vally import EvalSummary, RunSummary


def summary_lines(summary: RunSummary, style: Style, *, skip_grade: bool) -> Iterator[str]:
    """The block `Summary` and the verdict of the run."""
    yield "Summary"
    yield "─" * 13
    rows = [_eval_row(item) for item in summary.evals]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(2)]
    for item, (name, reason, counts) in zip(summary.evals, rows, strict=True):
        glyph = style.glyph("✔" if item.passed else "✘")
        yield f"  {glyph} {name:<{widths[0]}}  {reason:<{widths[1]}}    {counts}"
    yield ""
    yield verdict_line(summary, style, skip_grade=skip_grade)


def _eval_row(item: EvalSummary) -> tuple[str, str, str]:
    stats = item.stats or {}
    stimuli: Sequence[dict[str, object]] = stats.get("stimuli") or []
    passed = sum(stimulus.get("verdict") == "pass" for stimulus in stimuli)
    name = one_line(f"{item.name} ({item.model})")
    return (
        name,
        one_line(item.reason),
        f"{passed}/{plural(item.stimuli_total, 'stimulus', 'stimuli')} passed    {_trials(stimuli)}",
    )


def _trials(stimuli: Sequence[dict[str, object]]) -> str:
    def total(key: str) -> int:
        return sum(int(str(stimulus.get(key) or 0)) for stimulus in stimuli)

    trials, passed, errors, skipped = (total(key) for key in ("trials", "passed", "errors", "skipped"))
    failed = trials - passed - errors - skipped
    parts = [f"{passed} pass"] if passed or not (failed or errors or skipped) else []
    parts += [f"{failed} fail"] if failed > 0 else []
    parts += [plural(errors, "error")] if errors else []
    parts += [f"{skipped} skipped"] if skipped else []
    return f"{plural(trials, 'trial')}: {', '.join(parts)}"


def verdict_line(summary: RunSummary, style: Style, *, skip_grade: bool) -> str:
    """`PASSED`, `FAILED` or `PARTIAL (<reason>)` and the figures of the run."""
    if summary.partial:
        word = style.paint(f"PARTIAL ({summary.stop_reason})", "yellow")
    elif summary.passed:
        word = style.paint("DONE" if skip_grade else "PASSED", "green")
    else:
        word = style.paint("FAILED", "red")
    totals = summary.totals
    passed = sum(item.passed for item in summary.evals)
    parts = [
        f"{passed} of {plural(len(summary.evals), 'eval')} passed",
        plural(totals.trials, "trial"),
        f"{totals.flaky_stimuli} flaky",
        plural(totals.errors, "error"),
        duration(summary.duration_ms),
        f"{plural_tokens(totals.total_tokens)}",
    ]
    return f"{word}  {' · '.join(parts)}"


def plural_tokens(number: int) -> str:
    """`1 token`, `31,204 tokens`."""
    return f"{number:,} token{'' if number == 1 else 's'}"
