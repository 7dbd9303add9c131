"""A Ray cluster on the loopback interface, for tests that need one which is there already."""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from vally import LocalProcessRunner


@dataclass(frozen=True)
class RayCluster:
    """Where a cluster listens, and the variables by which programs may talk to it."""

    address: str
    env: dict[str, str]


@contextmanager
def ray_cluster(cpus: int = 4) -> Iterator[RayCluster]:
    """Start a cluster of one machine, and end all of it afterwards."""
    # Sockets of Ray lie deep below its directory, and their paths must be short.
    with tempfile.TemporaryDirectory(prefix="rc-", dir="/tmp", ignore_cleanup_errors=True) as made:
        directory = Path(made)
        env = {
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": uuid.uuid4().hex + uuid.uuid4().hex,
        }
        runner = LocalProcessRunner(
            f"cluster-{uuid.uuid4()}", {"PATH": os.environ["PATH"], **env}, cwd=directory, owned_dirs=(directory,)
        )
        words = ["--head", "--port=0", "--node-ip-address=127.0.0.1", "--include-dashboard=false"]
        words += ["--disable-usage-stats", f"--temp-dir={directory}", f"--num-cpus={cpus}"]
        words += [f"--object-store-memory={2**28}"]

        async def start() -> None:
            done = await runner.run([sys.executable, "-m", "ray.scripts.scripts", "start", *words], timeout=120)
            assert done.returncode == 0, done.stderr.decode()

        anyio.run(start)
        try:
            yield RayCluster((directory / "ray_current_cluster").read_text().strip(), env)
        finally:
            anyio.run(runner.kill_all)
