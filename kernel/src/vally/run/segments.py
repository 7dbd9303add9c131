"""Path segments made from names of evals, stimuli and models."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence

from vally.text.names import name_key

MAX_LENGTH = 80
_HEAD_LENGTH = 71
_MAX_BYTES = 200  # file systems allow 255 bytes, digits and names of temporary files included
_KEPT_MARKS = frozenset("._=,+@-")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\..*)?", re.IGNORECASE | re.DOTALL)


def segment(name: str) -> str:
    """A file name that resembles a name on every platform; two names may give the same."""
    normal = name_key(name)
    text = re.sub("\0+", "-", "".join(char if _is_kept(char) else "\0" for char in normal)).strip(".-") or "_"
    if _DEVICE.fullmatch(text):
        text += "_"
    if len(text) > MAX_LENGTH or len(text.encode()) > _MAX_BYTES:
        text = f"{_head(text)}-{name_digits(name)}"
    return text


def _is_kept(char: str) -> bool:
    return char in _KEPT_MARKS or unicodedata.category(char)[0] == "L" or unicodedata.category(char) == "Nd"


def _head(text: str) -> str:
    return text[:_HEAD_LENGTH].encode()[: _MAX_BYTES - 9].decode(errors="ignore")


def name_digits(name: str) -> str:
    """Eight hex digits that tell names apart."""
    normal = name_key(name)
    return hashlib.sha256(normal.encode("utf-8", "replace")).hexdigest()[:8]


class SegmentNamer:
    """Gives each name of a parent a segment of its own, first come first served; equal names get the same one."""

    def __init__(self) -> None:
        self._given: dict[tuple[tuple[str, ...], str], str] = {}
        self._taken: set[tuple[tuple[str, ...], str]] = set()

    def segment(self, parent: Sequence[str], name: str) -> str:
        """Segment of `name` below the names of `parent`; names must come in plan order."""
        place = tuple(name_key(part) for part in parent)
        key = (place, name_key(name))
        if key not in self._given:
            self._given[key] = self._free(place, name)
        return self._given[key]

    def path(self, names: Sequence[str]) -> tuple[str, ...]:
        """Segments of nested names, outermost first."""
        return tuple(self.segment(names[:depth], name) for depth, name in enumerate(names))

    def _free(self, place: tuple[str, ...], name: str) -> str:
        text = segment(name)
        while (place, text.casefold()) in self._taken:
            text = f"{text}-{name_digits(name)}"
        self._taken.add((place, text.casefold()))
        return text
