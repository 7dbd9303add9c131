"""How an examination is printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from vally import Style, cells, fit_glyphs, name_line, one_line, pad, report_block, reporting, use_color
from vally_command_doctor.findings import MISSING, NEEDS_CONFIG, READY, Findings, Part

if TYPE_CHECKING:
    from vally import CliContext

GLYPHS = {READY: "✔", NEEDS_CONFIG: "○", MISSING: "✘"}
GET_GIT = "install it from your system's packages or git-scm.com"


def print_report(findings: Findings, context: CliContext, output: str) -> None:
    """Print for people, or as one JSON object."""
    if output == "json":
        text = json.dumps(_document(findings), ensure_ascii=False) + "\n"
    else:
        style = Style(use_color(context.display.color, context.environ, sys.stdout))
        lines = _lines(findings, style, quiet=context.display.quiet, verbose=context.display.verbose)
        text = report_block("".join(f"{line}\n" for line in lines), context.environ)
    with reporting():
        sys.stdout.write(text if output == "json" else fit_glyphs(text, sys.stdout))
        sys.stdout.flush()


def _lines(findings: Findings, style: Style, *, quiet: bool, verbose: bool) -> Iterator[str]:
    width = max(len(name) for name in findings.versions)
    for name, version in findings.versions.items():
        if version is None:
            yield f"{name:<{width}}  {style.paint('not found', 'red')}: {GET_GIT}"
        elif not quiet:
            yield f"{name:<{width}}  {version}"
    parts = [part for part in findings.parts if not quiet or part.status == MISSING]
    if parts and not quiet:
        yield ""
    kinds = max((len(part.kind) for part in parts), default=0)
    names = max((cells(name_line(part.name)) for part in parts), default=0)
    for part in parts:
        name = pad(name_line(part.name), names)
        yield f"{style.glyph(GLYPHS[part.status])} {part.kind:<{kinds}}  {name}  {_detail(part)}"
        if verbose and part.status != MISSING:
            yield from (f"    {one_line(hint)}" for hint in part.hints)


def _detail(part: Part) -> str:
    words = {READY: "ready", NEEDS_CONFIG: "needs settings", MISSING: "cannot start"}[part.status]
    # How to get what is missing belongs to the line; what would start with other settings is for those who ask.
    told = one_line("; ".join(filter(None, (part.detail, *(part.hints if part.status == MISSING else ())))))
    return f"{words}: {told}" if told else words


def _document(findings: Findings) -> dict[str, object]:
    return {
        "type": "doctor",
        "version": 1,
        "versions": findings.versions,
        "parts": [
            {
                "kind": part.kind,
                "name": part.name,
                "version": part.version,
                "source": part.source,
                "status": part.status,
                "detail": part.detail,
                "hints": list(part.hints),
            }
            for part in findings.parts
        ],
    }
