"""What `vally experiment merge` tells people: the verdict of each eval, and of the whole run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vally import (
    Style,
    cells,
    counted_evals,
    is_ungraded,
    name_line,
    one_line,
    pad,
    plural,
    print_line,
    run_word,
    use_color,
)

if TYPE_CHECKING:
    from vally import CliContext, EvalSummary, RunSummary

Document = Mapping[str, Any]
CONTAMINATED = "contaminated"
_COLORS = {"partial": "yellow", "passed": "green", "failed": "red"}


def tell_merge(
    context: CliContext, summary: RunSummary, contaminated: Sequence[Document], shards: int, directory: str
) -> None:
    """Print what became of the shards; quietly the verdicts alone."""
    if not context.display.quiet:
        print_line(f"Merged {plural(shards, 'shard')}: {plural(summary.totals.trials, 'trial')}")
    style = Style(use_color(context.display.color, context.environ, sys.stdout))
    for line in _verdicts(summary, contaminated, style):
        print_line(line)
    print_line(f"Output directory: {directory}")


def _verdicts(summary: RunSummary, contaminated: Sequence[Document], style: Style) -> Iterator[str]:
    """A line for each eval of each variant, and the verdict of the run, as after a run."""
    spoiled = {(item["variant"], item["evalFile"], item["model"]) for item in contaminated}
    # A contaminated arm passed in its own eyes only.
    evals = [
        item.model_copy(update={"passed": False, "reason": CONTAMINATED})
        if (item.variant, item.eval_file_path, item.model) in spoiled
        else item
        for item in summary.evals
    ]
    names = [name_line(f"{item.name} / {item.variant} ({item.model})") for item in evals]
    width = max(map(cells, names), default=0)
    for item, name in zip(evals, names, strict=True):
        yield f"  {style.glyph(_glyph(item))} {pad(name, width)}  {one_line(item.reason)}"
    judged = summary.model_copy(update={"evals": evals, "passed": summary.passed and not contaminated})
    facts = [
        counted_evals(judged),
        plural(summary.totals.trials, "trial"),
        plural(summary.totals.errors, "error"),
    ]
    if contaminated:
        facts.append(plural(len(contaminated), "contaminated arm"))
    yield f"{_word(judged, style)}  {' · '.join(facts)}"


def _glyph(item: EvalSummary) -> str:
    if item.reason == CONTAMINATED:
        return "⚠"
    if is_ungraded(item):
        return "○"
    return "✔" if item.passed else "✘"


def _word(summary: RunSummary, style: Style) -> str:
    word = run_word(summary)
    text = f"PARTIAL ({one_line(summary.stop_reason or 'incomplete')})" if word == "partial" else word.upper()
    return style.paint(text, _COLORS[word]) if word in _COLORS else text
