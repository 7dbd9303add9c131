"""Long texts made short enough to be read."""

from __future__ import annotations

from collections.abc import Sequence


def window(text: str, limit: int) -> str:
    """Cut a text of more than `limit` characters in its middle: 40 % head, a marker, 60 % tail."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 5
    tail = limit - head
    return f"{text[:head]}\n…[{len(text) - limit} characters omitted]…\n{text[len(text) - tail :]}"


def fair_limit(lengths: Sequence[int], each: int, total: int) -> int:
    """The largest limit, at most `each`, under which texts of these lengths have at most `total` characters."""
    left, limit = total, each
    for index, length in enumerate(sorted(min(length, each) for length in lengths)):
        share = left // (len(lengths) - index)
        if length > share:
            return share
        left -= length
    return limit


def printable(text: str) -> str:
    """A text that any endpoint takes: lone surrogates as U+FFFD, control characters as the pictures of them."""
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.translate(_PICTURES)


_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"} | {0x7F: 0x2421}
