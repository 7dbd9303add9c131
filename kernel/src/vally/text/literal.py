"""Search for literal text."""

from __future__ import annotations


def contains_literal(text: str, literal: str, *, case_sensitive: bool) -> bool:
    """Whether `literal` occurs in `text`, by code points; otherwise after the full Unicode lower-case mapping."""
    if case_sensitive:
        return literal in text
    return literal.lower() in text.lower()
