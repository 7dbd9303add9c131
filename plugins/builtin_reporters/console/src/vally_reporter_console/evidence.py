"""How much of the evidence of a grader is shown, and on how many lines."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from vally import cut_evidence, cut_to_cells, one_line, printable

LIMIT = 500
"""Characters of evidence where no terminal sets a width."""


@dataclass(frozen=True, slots=True)
class EvidenceLayout:
    """One line cut to `width` columns, or to 500 characters without one; `whole` wraps all of it instead."""

    width: int | None = None
    whole: bool = False

    def lines(self, text: str, *, head: int, indent: int) -> Sequence[str]:
        """The text as it follows a head of that many columns, further lines with their indentation."""
        if self.whole:
            return self._wrapped(text, head, " " * indent)
        line = one_line(text)
        return [cut_evidence(line, LIMIT) if self.width is None else cut_to_cells(line, max(self.width - head, 1))]

    def _wrapped(self, text: str, head: int, indent: str) -> list[str]:
        paragraphs = [line.expandtabs(4) for line in printable(text).splitlines() if line.strip()]
        if not paragraphs:
            return [""]
        # The head stands where the first line is indented.
        first, *more = self._wrap(paragraphs[0].strip(), " " * head, indent)
        lines = [first[head:], *more]
        for paragraph in paragraphs[1:]:
            lines += self._wrap(paragraph.rstrip(), indent, indent)
        return lines

    def _wrap(self, text: str, first: str, indent: str) -> list[str]:
        width = self.width or LIMIT
        if len(first) + len(text) <= width:
            return [first + text]
        return textwrap.wrap(
            text,
            width=width,
            initial_indent=first,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
