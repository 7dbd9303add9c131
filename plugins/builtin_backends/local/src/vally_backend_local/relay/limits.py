"""Bounds of relays."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of a relay.

    `header_bytes` and `head_s` hold for the head of a request, `idle_s` for the wait before it, `piece_s` for that
    between pieces of its body. When an answer ends a connection, `unread_bytes` are read for at most `linger_s`, so
    that the client can read the answer. Bodies have no bound: no more than a piece of them is kept.
    """

    connections: int = 128
    header_bytes: int = 65536
    head_s: float = 60.0
    idle_s: float = 600.0
    piece_s: float = 60.0
    linger_s: float = 2.0
    unread_bytes: int = 16 * 2**20
