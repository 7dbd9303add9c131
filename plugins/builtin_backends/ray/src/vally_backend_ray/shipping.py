"""Sending workers what their orders need, each thing once."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from vally import Plan, PluginHost, TrialItem
from vally_backend_ray.bridge_process import BridgeProcess
from vally_backend_ray.bundle import Bundle
from vally_backend_ray.hosts import LocalPlugins, host_plan, local_plugins
from vally_backend_ray.messages import HostPlan, Order
from vally_backend_ray.parcels import Parcels


class Shipping:
    """Makes bundles in the directory of the bridge and puts them into the object store."""

    def __init__(self, process: BridgeProcess, process_env: Mapping[str, str]) -> None:
        self._process = process
        directory = process.directory / "bundles"
        directory.mkdir()
        self._parcels = Parcels(directory, process_env)
        self._hosts: dict[int, tuple[PluginHost, HostPlan]] = {}
        self._sent: dict[str, asyncio.Task[None]] = {}
        self._removed: set[Path] = set()

    async def prepared(self, plan: Plan | None, plugins: LocalPlugins) -> tuple[list[Bundle], HostPlan]:
        """The bundles of a whole run, not yet sent, and how its plugin host is made. Raises `BackendError`."""
        own = await in_thread(self._parcels.of_plugins, plugins)
        bundles = [] if plan is None else await in_thread(self._parcels.of_plan, plan)
        return [*([] if own is None else [own]), *bundles], host_plan(plugins, None if own is None else own.key)

    async def send(self, bundle: Bundle) -> None:
        """Put a bundle into the object store, once. Raises `BackendError`."""
        if bundle.key not in self._sent:
            self._sent[bundle.key] = asyncio.create_task(self._put(bundle))
        await asyncio.shield(self._sent[bundle.key])
        if bundle.archive not in self._removed:
            self._removed.add(bundle.archive)
            await in_thread(partial(bundle.archive.unlink, missing_ok=True))

    async def _put(self, bundle: Bundle) -> None:
        await self._process.link.call("add_bundle", bundle.key, bundle.archive)

    async def add_host(self, host: PluginHost, plan: HostPlan) -> None:
        """Let workers make a plugin host when they need it. Raises `BackendError`."""
        await self._process.link.call("add_host", plan)
        self._hosts[id(host)] = (host, plan)

    async def order(self, item: TrialItem, host: PluginHost, body: bytes) -> Order:
        """An order whose files and plugins are on their way. Raises `BackendError`."""
        bundle = self._parcels.known(item) or await in_thread(self._parcels.of, item)
        await self.send(bundle)
        plan = await self._host(host)
        attempt = str(uuid.uuid4())
        return Order(
            attempt=attempt,
            host=plan.key,
            bundle=bundle.key,
            body=body,
            directory=self._process.directory / "in" / attempt,
        )

    async def _host(self, host: PluginHost) -> HostPlan:
        known = self._hosts.get(id(host))
        if known is not None and known[0] is host:
            return known[1]
        plugins = local_plugins(host)
        own = await in_thread(self._parcels.of_plugins, plugins)
        if own is not None:
            await self.send(own)
        plan = host_plan(plugins, None if own is None else own.key)
        await self.add_host(host, plan)
        return plan


async def in_thread(function: Any, *arguments: Any) -> Any:
    """Do what blocks in another thread."""
    return await anyio.to_thread.run_sync(function, *arguments)
