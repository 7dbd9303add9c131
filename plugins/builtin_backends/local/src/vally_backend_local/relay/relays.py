"""The relays of a trial: one for each provider that its agent asks."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.abc

from vally import ExecutorError, ProviderConfig
from vally_backend_local.relay.limits import Limits

if TYPE_CHECKING:
    from vally_backend_local.relay.relay import Relay

FIRST_PORT = 61_080
"""Above the ports that systems hand out. It may be the same for all trials, each of which has a network of its own."""


@dataclass(frozen=True, slots=True)
class Forward:
    """What a forwarder has to do: lead from a loopback port to a socket, which it sees by the same path."""

    port: int
    socket: Path


@dataclass(frozen=True, slots=True)
class _Open:
    provider: ProviderConfig
    told: ProviderConfig
    forward: Forward
    scope: anyio.CancelScope


class ModelRelays:
    """The relays of one trial; made by `model_relays`."""

    def __init__(self, tasks: anyio.abc.TaskGroup, limits: Limits) -> None:
        self._tasks = tasks
        self._limits = limits
        self._open: list[_Open] = []
        self._opening = anyio.Lock()

    @property
    def forwards(self) -> tuple[Forward, ...]:
        """What forwarders have to do, the latest last."""
        return tuple(item.forward for item in self._open)

    async def reach(self, provider: ProviderConfig, directory: Path, warn: Callable[[str], None]) -> ProviderConfig:
        """Open a relay to a resolved provider and return what the agent may know of it: a loopback address and a token.

        `directory` is private and seen by the agent's processes. The headers of the provider are added outside. A
        provider that cannot be used is told to `warn`, once. Raises `ExecutorError`.
        """
        async with self._opening:
            for item in self._open:
                if item.provider == provider:
                    return item.told
            opened = await self._opened(provider, directory, warn)
            self._open.append(opened)
            return opened.told

    def close(self) -> None:
        """End the relays: whoever still has a token asks nobody any more. Idempotent."""
        for item in self._open:
            item.scope.cancel()

    async def _opened(self, provider: ProviderConfig, directory: Path, warn: Callable[[str], None]) -> _Open:
        # What many runs never need is imported late.
        import httpx2

        from vally_backend_local.relay.relay import Relay
        from vally_backend_local.relay.upstream import Upstream, rewritten

        token = f"vally-relay-{secrets.token_hex(16)}"
        port = FIRST_PORT + len(self._open)
        forward = Forward(port, directory / f"model-{port}")
        try:
            relay = Relay(forward.socket, Upstream(provider, token, warn), self._limits)
        except (OSError, httpx2.InvalidURL) as error:
            raise ExecutorError(f"the model relay cannot be opened: {error}", code="executor-config") from error
        try:
            scope = await self._tasks.start(_serve, relay, warn)
        except BaseException:
            relay.discard()
            raise
        bearer = provider.bearer_token is not None
        told = replace(
            provider,
            base_url=rewritten(provider.base_url or "", port),
            api_key=None if bearer else token,
            bearer_token=token if bearer else None,
            headers={},
        )
        return _Open(provider, told, forward, scope)


async def _serve(
    relay: Relay, warn: Callable[[str], None], *, task_status: anyio.abc.TaskStatus[anyio.CancelScope]
) -> None:
    """Serve until cancelled; a relay that fails must not take the trial with it."""
    with anyio.CancelScope() as scope:
        task_status.started(scope)
        try:
            await relay.serve()
        except Exception as error:
            warn(f"the model relay failed: {error}")


@asynccontextmanager
async def model_relays(limits: Limits | None = None) -> AsyncIterator[ModelRelays]:
    """The relays of one trial, which end with the context at the latest."""
    try:
        async with anyio.create_task_group() as tasks:
            try:
                yield ModelRelays(tasks, limits or Limits())
            finally:
                tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        # Only what the context itself raises can be in it.
        raise group.exceptions[0] from None
