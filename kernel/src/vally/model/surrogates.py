"""Text that is no valid Unicode, which agents do produce."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def without_surrogates(value: Any) -> Any:
    """Replace lone surrogates by U+FFFD in a text, or in all keys and texts of nested mappings and lists."""
    # A stack instead of recursion: recorded values may be nested nearly as deep as Python can recurse. What was met
    # before is found again, so that a value that contains itself stays finite.
    pending: list[tuple[Any, Any]] = []
    copies: dict[int, tuple[Any, Any]] = {}

    def repaired(item: Any) -> Any:
        if isinstance(item, str):
            return item if is_encodable(item) else repaired_text(item)
        if not isinstance(item, (Mapping, list, tuple)):
            return item
        if id(item) not in copies:
            # The original is kept beside its copy, so that its identity stays its own.
            copies[id(item)] = (item, {} if isinstance(item, Mapping) else [])
            pending.append(copies[id(item)])
        return copies[id(item)][1]

    result = repaired(value)
    while pending:
        source, target = pending.pop()
        if isinstance(source, Mapping):
            target.update({repaired(key): repaired(item) for key, item in source.items()})
        else:
            target.extend([repaired(item) for item in source])
    return result


def is_encodable(text: str) -> bool:
    """Whether a text can be written as UTF-8."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def repaired_text(text: str) -> str:
    """A text whose pairs of surrogates are the characters they stand for, and whose lone ones are U+FFFD."""
    # The detour over UTF-16 joins pairs of surrogates into the character they stand for.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
