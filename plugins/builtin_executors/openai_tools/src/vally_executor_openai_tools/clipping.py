"""Output of any length in bounded memory: its head and its tail."""

from __future__ import annotations

from codecs import getincrementaldecoder

from vally import clip_middle

_CONTINUATION = bytes(range(0x80, 0xC0))


class HeadAndTail:
    """Collects bytes; of more than `limit` the first and the last half stay.

    `text` cuts at characters and tells how many bytes are left out.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._received = 0

    def add(self, chunk: bytes) -> None:
        """Take the next piece."""
        self._received += len(chunk)
        room = max(0, self._limit - len(self._head))
        self._head += chunk[:room]
        self._tail += chunk[room:]
        # Cutting at twice the size keeps the cost of long outputs linear.
        if len(self._tail) > 2 * self._limit:
            del self._tail[: -self._limit]

    def text(self) -> str:
        """What was collected, as text."""
        if self._received <= self._limit:
            return self._head.decode("utf-8", "replace")
        kept = bytes(self._head + self._tail)
        # Halves of characters at the cut are left out too.
        tail = kept[-self._half :].lstrip(_CONTINUATION)
        decoder = getincrementaldecoder("utf-8")("replace")
        head = decoder.decode(kept[: self._half])
        split, _ = decoder.getstate()
        omitted = self._received - self._half + len(split) - len(tail)
        return f"{head}…[{omitted} bytes omitted]…{tail.decode('utf-8', 'replace')}"


def clipped(text: str, limit: int) -> str:
    """A text of at most `limit` bytes and a marker: its head and its tail."""
    return clip_middle(text, limit, limit // 2, limit // 2)
