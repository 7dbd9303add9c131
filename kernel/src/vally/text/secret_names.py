"""Which variables and parameters hold secrets, by their names, and which values are worth hiding."""

from __future__ import annotations

import re

MIN_LENGTH = 8
"""Shorter values are words that occur anywhere."""
_SECRET_NAME = re.compile(
    r".*(?:TOKEN|_KEY|APIKEY|SECRET|PASSWORD|_PAT|CONNECTION_STRING|CREDENTIALS)", re.IGNORECASE | re.DOTALL
)
_PLAIN_WORDS = frozenset({"true", "false", "production", "development", "localhost"})


def is_secret_name(name: str) -> bool:
    """Whether a variable or parameter of this name holds a secret."""
    return _SECRET_NAME.fullmatch(name) is not None


def is_secret_value(value: str) -> bool:
    """Whether a value is long and unusual enough to be looked for in text."""
    return len(value) >= MIN_LENGTH and value.casefold() not in _PLAIN_WORDS
