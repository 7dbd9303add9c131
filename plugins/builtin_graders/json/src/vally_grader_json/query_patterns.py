"""The functions `match` and `search` of queries, with the engine that gives up at its time limit.

Patterns are those of RFC 9485 (I-Regexp), whose section 5.3 says what they are in ECMAScript with the flag `u`.
"""

from __future__ import annotations

import re
from typing import ClassVar

from iregexp_check import check
from jsonpath_rfc9535.function_extensions import ExpressionType, FilterFunction

from vally import InvalidRegex, compile_regex

# An escape, a class, a dot outside of one. Only outside of a class ECMAScript refuses the escaped hyphen.
_PART = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\.", re.DOTALL)


class Search(FilterFunction):
    """Whether a text contains what a pattern describes; false for what is no text, or no pattern."""

    arg_types: ClassVar = [ExpressionType.VALUE, ExpressionType.VALUE]
    return_type = ExpressionType.LOGICAL

    def __call__(self, text: object, pattern: object) -> bool:
        if not isinstance(text, str) or not isinstance(pattern, str) or not check(pattern):
            return False
        try:
            regex = compile_regex(self.wrapped(_PART.sub(_in_ecmascript, pattern)), unicode=True)
        except InvalidRegex:
            return False
        return regex.search(text) is not None

    def wrapped(self, source: str) -> str:
        """The whole expression."""
        return f"(?:{source})"


class Match(Search):
    """Whether the whole of a text is what a pattern describes."""

    def wrapped(self, source: str) -> str:
        return f"^(?:{source})$"


def _in_ecmascript(part: re.Match[str]) -> str:
    return {".": r"[^\n\r]", r"\-": "-"}.get(part[0], part[0])
