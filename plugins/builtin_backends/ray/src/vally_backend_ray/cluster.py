"""Talking to Ray: the only module that imports it, and only in the bridge."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vally import BackendError
from vally_backend_ray.addresses import NO_CLUSTER, NOT_LET_IN, check_answers
from vally_backend_ray.codes import FAILED, UNAVAILABLE
from vally_backend_ray.crew import WorkerLost
from vally_backend_ray.link import Failure
from vally_backend_ray.messages import PIECE_BYTES, ClusterSettings
from vally_backend_ray.pickling import unpacked
from vally_backend_ray.worker import Worker

OBJECT_STORE_BYTES = 256 * 2**20
KEEP_CHILDREN = {"RAY_kill_child_processes_on_worker_exit": "0"}
"""Else Ray ends the children of a worker that ends, and with them the guardian that would end their children."""

PLACE_S = 120.0
"""How long it may take until a worker runs."""


class Cluster:
    """The connection of the bridge to a cluster."""

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings

    def open(self) -> None:
        """Start a cluster on this machine, or connect to one. Blocks; raises `BackendError`."""
        import ray

        settings = self._settings
        if settings.address is not None:
            check_answers(settings.address)
        quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "logging_level": logging.ERROR}
        try:
            if settings.address is None:
                ray.init(address="local", **self._sizes(), **quiet)
            else:
                ray.init(address=settings.address, **quiet)
        except Exception as error:
            raise _not_connected(settings.address, error) from error

    def facts(self) -> dict[str, str]:
        """The version of Ray, and how many machines there are at the start."""
        import ray

        nodes = [node for node in ray.nodes() if node.get("Alive")]  # type: ignore[no-untyped-call]  # so in Ray
        return {"ray": ray.__version__, "nodes": str(len(nodes))}

    def _sizes(self) -> dict[str, Any]:
        settings = self._settings
        return {
            "num_cpus": math.ceil(settings.workers * settings.cpus),
            "resources": {name: amount * settings.workers for name, amount in settings.resources.items()},
            "_memory": None if settings.memory is None else settings.memory * settings.workers,
            "object_store_memory": OBJECT_STORE_BYTES,
            "include_dashboard": False,
            "_node_ip_address": "127.0.0.1",
            "_temp_dir": str(settings.directory),
        }

    def put(self, archive: Path) -> list[Any]:
        """Put a file into the object store, piece by piece. Blocks; raises `OSError`."""
        import ray

        pieces = []
        with archive.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                pieces.append(ray.put(piece))
        return pieces

    async def hire(
        self, pieces: Sequence[Any], plan: bytes, may_wait: Callable[[], bool]
    ) -> tuple[Any, Mapping[str, Any]]:
        """Make an actor and start it, as soon as the cluster has room for it. Raises `BackendError`.

        A cluster may grow, so there is no limit as long as `may_wait` says that there are others to work meanwhile.
        """
        import ray

        settings = self._settings
        actor: Any = (
            ray.remote(Worker)
            .options(
                num_cpus=settings.cpus,
                memory=settings.memory,
                resources=dict(settings.resources),
                max_restarts=0,
                max_concurrency=8 * settings.slots + 64,
                scheduling_strategy="SPREAD",
                runtime_env=None if settings.address is None else {"env_vars": KEEP_CHILDREN},
            )
            .remote(settings.worker)
        )
        starting = asyncio.ensure_future(_called(actor, "start", plan, list(pieces)))
        try:
            while not (await asyncio.wait([starting], timeout=PLACE_S))[0]:
                if not may_wait():
                    raise BackendError(self._not_placed(), code=UNAVAILABLE)
            found = unpacked(starting.result())
        except WorkerLost as lost:
            raise BackendError(f"a worker could not be started: {lost}", code=UNAVAILABLE) from lost
        except BaseException:
            starting.cancel()
            ray.kill(actor)
            raise
        if isinstance(found, Failure):
            ray.kill(actor)
            raise found.error()
        return actor, found

    def _not_placed(self) -> str:
        import ray

        settings = self._settings
        wanted = {"CPU": settings.cpus, **settings.resources}
        if settings.memory is not None:
            wanted["memory"] = settings.memory
        total: Mapping[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]  # so in Ray
        words = [f"{name} {amount:g} (the cluster has {total.get(name, 0):g})" for name, amount in wanted.items()]
        return f"no worker was placed within {PLACE_S:g} s; each needs {', '.join(words)}"

    async def call(self, actor: Any, method: str, *arguments: Any) -> Any:
        """Ask an actor. Raises `WorkerLost` when it is gone."""
        return await _called(actor, method, *arguments)

    def kill(self, actor: Any) -> None:
        """End an actor at once."""
        import ray

        ray.kill(actor)

    def close(self) -> None:
        """Leave the cluster, and end it when it was started here. Blocks."""
        import ray

        ray.shutdown()


def _not_connected(address: str | None, error: Exception) -> BackendError:
    text = (" ".join(str(error).split()) or type(error).__name__)[:500]
    if address is None:
        return BackendError(f"Ray could not be started: {text}", code=UNAVAILABLE)
    # With a port it was asked before whether anybody listens there.
    what, hint = ("connection to", NOT_LET_IN) if ":" in address else ("cluster at", NO_CLUSTER)
    return BackendError(f"no {what} '{address}': {text}", code=UNAVAILABLE, hints=(hint,))


async def _called(actor: Any, method: str, *arguments: Any) -> Any:
    from ray import exceptions

    try:
        return await getattr(actor, method).remote(*arguments)
    except exceptions.RayTaskError as error:
        cause = error.cause if isinstance(error.cause, Exception) else error
        raise BackendError(f"a worker failed: {type(cause).__name__}: {cause}", code=FAILED) from error
    except exceptions.RayError as error:
        raise WorkerLost(_reason(error)) from error


def _reason(error: Exception) -> str:
    """The line of a long text that says what happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "reason" in line.lower() or "died" in line.lower() or "exit" in line.lower()]
    text = (telling or lines or [type(error).__name__])[-1]
    return text[:300]
