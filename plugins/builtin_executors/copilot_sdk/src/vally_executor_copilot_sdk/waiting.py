"""Noticing how a turn ends."""

from __future__ import annotations

from typing import Literal

import anyio

from vally_executor_copilot_sdk.native import Native, of_main_agent

How = Literal["idle", "aborted", "error"]
_BEGINNINGS = frozenset({"user.message", "assistant.turn_start"})


class TurnWatch:
    """How the turn that is open ends, told by the events of its session.

    Events count from the first sign of this turn on, so that a late end of the turn before ends nothing. Events of
    sub-agents end nothing either. `error` is the data of the error that ended the turn.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A prompt is about to be sent."""
        self._begun = False
        self.how: How | None = None
        self.error: dict[str, object] | None = None
        self._ended = anyio.Event()

    def feed(self, event: Native) -> None:
        """Take the next event of the session."""
        if self.how is not None or not of_main_agent(event):
            return
        kind, data = event["type"], event["data"]
        if kind in _BEGINNINGS:
            # The runtime adds messages of its own, which are no sign of the turn.
            self._begun = self._begun or kind != "user.message" or data.get("source") in (None, "user")
        elif not self._begun:
            return
        elif kind == "session.error":
            self.error = data
            self._end("error")
        elif kind == "session.idle":
            self._end("aborted" if data.get("aborted") else "idle")

    async def wait(self) -> How:
        """Return how the turn ended, once it has."""
        await self._ended.wait()
        assert self.how is not None
        return self.how

    def _end(self, how: How) -> None:
        self.how = how
        self._ended.set()
