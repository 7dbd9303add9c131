"""What `vally experiment merge` tells people: the verdict of each eval, and of the whole run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from vally import Style, cells, name_line, one_line, pad, plural, print_line, use_color

if TYPE_CHECKING:
    from vally import CliContext

Document = Mapping[str, Any]


def tell_merge(context: CliContext, document: Document, shards: int, directory: str) -> None:
    """Print what became of the shards; quietly the verdicts alone."""
    if not context.display.quiet:
        print_line(f"Merged {plural(shards, 'shard')}: {plural(document['totals']['trials'], 'trial')}")
    style = Style(use_color(context.display.color, context.environ, sys.stdout))
    for line in _verdicts(document, style):
        print_line(line)
    print_line(f"Output directory: {directory}")


def _verdicts(document: Document, style: Style) -> Iterator[str]:
    """A line for each eval of each variant, and the verdict of the run, as after a run."""
    evals = [item for variant in document["variants"] for item in variant["evals"]]
    names = [name_line(f"{item['name']} / {item['variant']} ({item['model']})") for item in evals]
    width = max(map(cells, names), default=0)
    spoiled = {(item["variant"], item["evalFile"], item["model"]) for item in document["contaminated"]}
    for item, name in zip(evals, names, strict=True):
        contaminated = (item["variant"], item["evalFilePath"], item["model"]) in spoiled
        glyph, reason = ("⚠", "contaminated") if contaminated else (_glyph(item), item["reason"])
        yield f"  {style.glyph(glyph)} {pad(name, width)}  {one_line(reason)}"
    totals = document["totals"]
    ungraded = sum(map(_is_ungraded, evals))
    passed = f"{sum(item['passed'] for item in evals) - ungraded} of {len(evals)} evals passed"
    if ungraded:
        passed = f"{passed}, {ungraded} not graded" if ungraded < len(evals) else "nothing was graded"
    facts = [
        passed,
        plural(totals["trials"], "trial"),
        plural(totals["errors"], "error"),
    ]
    if document["contaminated"]:
        facts.append(plural(len(document["contaminated"]), "contaminated arm"))
    word = _word(document, style, graded=ungraded < len(evals))
    yield f"{word}  {' · '.join(facts)}"


def _is_ungraded(item: Document) -> bool:
    return bool(item["passed"]) and not item["stimuliRun"]


def _glyph(item: Document) -> str:
    if _is_ungraded(item):
        return "○"
    return "✔" if item["passed"] else "✘"


def _word(document: Document, style: Style, *, graded: bool) -> str:
    if document["partial"]:
        return style.paint(f"PARTIAL ({one_line(document['stopReason'] or 'incomplete')})", "yellow")
    if not graded:
        return "SKIPPED"
    return style.paint("PASSED", "green") if document["passed"] else style.paint("FAILED", "red")
