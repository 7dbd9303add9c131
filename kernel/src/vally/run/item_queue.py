"""The items that workers take, with a limit on those that run with one model at a time."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from vally.run.trial import TrialItem

LOOK_AHEAD = 1000
"""Items that may be passed over because their model is busy; memory does not grow with the plan."""


class ItemQueue:
    """Gives items in plan order, but for those whose model has `per_model` trials running already; they come later.

    Not thread-safe. Every item that was taken has to be given back with `done`.
    """

    def __init__(self, items: Iterator[TrialItem], per_model: int | None = None) -> None:
        self._items = items
        self._per_model = per_model
        self._running: Counter[str | None] = Counter()
        self._passed_over: deque[TrialItem] = deque()
        self._is_empty = False
        self._given_back = anyio.Event()

    async def take(self) -> TrialItem | None:
        """The next item that may run, once there is one; None when no item is left."""
        while True:
            item = self._next()
            if item is not None:
                self._running[item.model] += 1
                return item
            if self._is_empty and not self._passed_over:
                return None
            await self._given_back.wait()

    def done(self, item: TrialItem) -> None:
        """Let another item of the same model run."""
        self._running[item.model] -= 1
        self._given_back.set()
        self._given_back = anyio.Event()

    def rest(self) -> Iterator[TrialItem]:
        """What nobody took."""
        yield from self._passed_over
        self._passed_over.clear()
        yield from self._items

    def _next(self) -> TrialItem | None:
        for place, item in enumerate(self._passed_over):
            if self._may_run(item):
                del self._passed_over[place]
                return item
        while len(self._passed_over) < LOOK_AHEAD:
            found = next(self._items, None)
            if found is None:
                self._is_empty = True
                return None
            if self._may_run(found):
                return found
            self._passed_over.append(found)
        return None

    def _may_run(self, item: TrialItem) -> bool:
        return self._per_model is None or self._running[item.model] < self._per_model
