"""Asking which processes of a trial are left."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from vally.processes.scan import Marks, find_processes, process_table

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from vally.processes.scan import Entry


def find_marked(
    trial_id: str | None, marks: Iterable[tuple[str, str]] = (), dirs: Iterable[Path] = (), *, since: float = 0.0
) -> list[Entry]:
    """Return living processes of this user that carry the trial's id, one of the (name, value) pairs, or lie in `dirs`.

    `since` is a reading of the process table's clock: older processes are left out. This process and its ancestors are
    never returned.
    """
    pairs = {f"{name}={value}" for name, value in marks}
    if trial_id is not None:
        pairs.add(f"VALLY_TRIAL={trial_id}")
    real = tuple(os.fsencode(os.path.realpath(path)) for path in dirs)
    return find_processes(Marks(frozenset(map(os.fsencode, pairs)), real, {}, since), process_table())
