"""What an examination found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

READY, NEEDS_CONFIG, MISSING = "ready", "needs-config", "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One executor, judge or backend. `status` is `ready`, `needs-config` or `missing`.

    `detail` tells what would start, which settings it needs, or what is missing; `hints` how to get it.
    """

    kind: str
    name: str
    version: str | None
    source: str
    status: str
    detail: str = ""
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Versions of the programs that everything needs, None for one that is missing, and all parts."""

    versions: dict[str, str | None]
    parts: Sequence[Part]

    @property
    def anything_missing(self) -> bool:
        """Whether something cannot start."""
        return None in self.versions.values() or any(part.status == MISSING for part in self.parts)
