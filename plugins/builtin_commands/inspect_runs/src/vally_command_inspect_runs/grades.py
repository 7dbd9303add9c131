"""The results of graders as a tree, with their evidence."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vally import cells, cut_to_cells, name_line, one_line, printable, two_decimals

if TYPE_CHECKING:
    from vally import GraderResult, Style

_INDENT = 2


@dataclass(frozen=True, slots=True)
class GradeLayout:
    """How results are laid out: columns of a line, colours, and whether evidence is shown whole."""

    width: int
    style: Style
    whole: bool = False

    def lines(self, grade: GraderResult) -> Iterator[str]:
        """A head with the counts, then a line per result, nested ones indented."""
        details = grade.details or []
        errors = sum(item.status == "error" for item in details)
        passed = sum(item.passed and item.status != "error" for item in details)
        yield f"Graders ({passed}/{len(details)})" + (f", {errors} without verdict" if errors else "")
        for item in details:
            yield from self._result(item, _INDENT)

    def _result(self, item: GraderResult, indent: int) -> Iterator[str]:
        glyph = "⚠" if item.status == "error" else "✔" if item.passed else "✘"
        name = name_line(item.name or item.grader_type or "")
        score = "" if item.status == "error" or item.score in (0, 1) else f"  {two_decimals(item.score)}"
        head = f"{' ' * indent}{self.style.glyph(glyph)} {name}{score}  "
        width = indent + 2 + cells(name) + cells(score) + 2
        if self.whole:
            yield head.rstrip()
            yield from _wrapped(item.evidence, self.width, " " * (indent + 4))
        else:
            evidence = one_line(item.evidence)
            # What kept a grader from a verdict stands at its end.
            cut = evidence if item.status == "error" else cut_to_cells(evidence, max(self.width - width, 20))
            yield (head + cut).rstrip()
        for detail in item.details or ():
            yield from self._result(detail, indent + _INDENT)


def _wrapped(text: str, width: int, indent: str) -> Iterator[str]:
    for line in printable(text).expandtabs(4).splitlines():
        if len(indent) + len(line) <= width:
            yield (indent + line).rstrip()
            continue
        yield from textwrap.wrap(
            line,
            width=max(width, len(indent) + 20),
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
