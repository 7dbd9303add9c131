"""Agents that serve several trials, one after the other or side by side."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from vally_executor_acp.agent import Agent

Start = Callable[[], Awaitable[Agent]]


@dataclass(slots=True, eq=False)
class _Shared:
    agent: Agent
    sessions: int = 0


class AgentPool:
    """Hands out agents by key, each to at most `places` sessions at a time."""

    def __init__(self) -> None:
        self._agents: dict[object, list[_Shared]] = {}
        self._starting: dict[object, anyio.Lock] = {}

    async def acquire(self, key: object, places: int, start: Start) -> Agent:
        """An agent with a free place; starts one when there is none. Raises what `start` raises."""
        async with self._starting.setdefault(key, anyio.Lock()):
            shared = self._free(key, places)
            if shared is None:
                shared = _Shared(await start())
                self._agents.setdefault(key, []).append(shared)
            shared.sessions += 1
            return shared.agent

    async def release(self, agent: Agent) -> None:
        """Give a place back; an agent that is gone is forgotten."""
        for agents in self._agents.values():
            for shared in [item for item in agents if item.agent is agent]:
                shared.sessions -= 1
                if not agent.alive:
                    agents.remove(shared)
                    await agent.close()

    async def close(self) -> None:
        """End all agents."""
        agents = [shared.agent for group in self._agents.values() for shared in group]
        self._agents.clear()
        for agent in agents:
            await agent.close()

    def _free(self, key: object, places: int) -> _Shared | None:
        usable = (item for item in self._agents.get(key, ()) if item.agent.alive and item.sessions < places)
        return next(usable, None)
