"""Which request targets lie below the path of a provider."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

MOST_DECODINGS = 4
_SEPARATORS = re.compile(rb"[/\\]")
_DOTS = frozenset({b".", b".."})


def is_below(target: bytes, base: bytes) -> bool:
    """Whether a request target of the form `/path?query` lies below the path `base`, however often it is decoded.

    A target with a dot segment never does, written plainly or not: who resolves it, and when, cannot be known.
    """
    path = target.partition(b"?")[0]
    below = base.rstrip(b"/")
    if not path.startswith(b"/") or not (path == below or path.startswith(below + b"/")):
        return False
    for _ in range(MOST_DECODINGS):
        if not _DOTS.isdisjoint(_SEPARATORS.split(path)):
            return False
        decoded = unquote_to_bytes(path)
        if decoded == path:
            return True
        path = decoded
    return False
