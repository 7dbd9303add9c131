"""Names as they are compared."""

from __future__ import annotations

import unicodedata


def name_key(name: str) -> str:
    """What is equal for names that are the same: a letter may be composed or not, as on paper and in file systems."""
    return unicodedata.normalize("NFC", name)
