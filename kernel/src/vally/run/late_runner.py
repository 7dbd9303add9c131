"""A process runner that is made when the first process is: most graders start none."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from vally.model.evalspec import ProviderConfig
    from vally.processes import LocalProcessRunner
    from vally.processes.result import Completed
    from vally.run.inputs import Process


class LateRunner:
    """Runs processes on this machine as one trial; `env` is their default environment. See `ProcessRunner`."""

    network: Literal["host", "model", "none"] = "host"

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._made: LocalProcessRunner | None = None

    def _runner(self) -> LocalProcessRunner:
        if self._made is None:
            from vally.processes import LocalProcessRunner

            self._made = LocalProcessRunner(trial_id=str(uuid.uuid4()), env=self._env)
        return self._made

    def wrap(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """Return command and environment for a library that starts the process itself."""
        return self._runner().wrap(argv, cwd=cwd, env=env)

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float | None = None,
        max_bytes: int = 10 * 2**20,
    ) -> Completed:
        """Run a process to its end."""
        return await self._runner().run(argv, cwd=cwd, env=env, stdin=stdin, timeout=timeout, max_bytes=max_bytes)

    async def start(
        self, argv: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Process:
        """Start a process with three pipes."""
        return await self._runner().start(argv, cwd=cwd, env=env)

    def mark(self, name: str, value: str) -> None:
        """Know processes whose environment holds `name=value` as those of this trial."""
        self._runner().mark(name, value)

    async def reach_provider(self, provider: ProviderConfig, warn: Callable[[str], None]) -> ProviderConfig:
        """Return the provider as it is."""
        return provider

    async def kill_all(self, grace: float = 2.0) -> int:
        """End every process that was started."""
        return 0 if self._made is None else await self._made.kill_all(grace)
