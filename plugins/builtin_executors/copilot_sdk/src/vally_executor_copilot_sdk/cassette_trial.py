"""One trial that is recorded on a cassette, or replayed from one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from vally import ExecutorError, ExecutorOptions, Stimulus, Trajectory
from vally_executor_copilot_sdk.cassette import Cassette, cassette_file, new_head, read_cassette, write_cassette
from vally_executor_copilot_sdk.cassette_text import Places
from vally_executor_copilot_sdk.config import CopilotConfig

if TYPE_CHECKING:
    from vally_executor_copilot_sdk.cassette_handler import Player, Recorder
    from vally_executor_copilot_sdk.forwarding import Gateway

_UNFINISHED = frozenset({"error", "agent_timeout", "cancelled"})


class CassetteTrial:
    """Runs once; `handler` gets the model calls of the trial."""

    def __init__(self, config: CopilotConfig, options: ExecutorOptions, path: Path, model: str) -> None:
        self._config = config
        self._options = options
        self._path = path
        self._model = model
        self.handler: Recorder | Player

    async def run(self, work: Callable[[], Awaitable[Trajectory]]) -> Trajectory:
        """Do the work; raises its `ExecutorError`, or that of a call for which there is no answer."""
        try:
            trajectory = await work()
        except ExecutorError as error:
            raise self._miss(error.trajectory) or error from None
        finally:
            with anyio.CancelScope(shield=True):
                await self.handler.close()
        missed = self._miss(trajectory)
        if missed is not None:
            raise missed
        await self._finish(trajectory)
        metadata = {**(trajectory.metadata or {}), "cassette": self._config.cassette}
        return trajectory.model_copy(update={"metadata": metadata})

    def _miss(self, trajectory: Trajectory | None) -> ExecutorError | None:
        missed = getattr(self.handler, "miss", None)
        if missed is None:
            return None
        return ExecutorError(f"{missed.message} ({self._path})", code=missed.code, trajectory=trajectory)

    async def _finish(self, trajectory: Trajectory) -> None:
        from vally_executor_copilot_sdk.cassette_handler import Player

        if isinstance(self.handler, Player):
            if left := self.handler.left:
                self._options.warn(f"calls of the cassette that were not asked for: {left} ({self._path})")
            return
        if trajectory.end_reason in _UNFINISHED:
            return
        provider = self._config.provider
        assert provider is not None
        wire = {"type": provider.type, "wireApi": None if provider.type == "anthropic" else provider.wire_api}
        told = trajectory.metadata or {}
        versions = str(told.get("executorVersion", "")), str(told.get("sdkVersion", ""))
        cassette = Cassette(new_head(wire, self._model, *versions), self.handler.exchanges)
        await anyio.to_thread.run_sync(write_cassette, self._path, cassette)


async def open_cassette(
    config: CopilotConfig,
    stimulus: Stimulus,
    options: ExecutorOptions,
    model: str | None,
    gateway: Gateway | None = None,
) -> CassetteTrial | None:
    """What records or replays a trial; None when neither is asked for. Raises `ExecutorError`.

    Calls that are recorded go through `gateway`, if there is one.
    """
    if config.cassette == "off":
        return None
    from vally_executor_copilot_sdk.cassette_handler import Player, Recorder

    path = cassette_file(config.cassette_dir, stimulus, options, model or "")
    trial = CassetteTrial(config, options, path, model or "")
    places = _places(options)
    if config.cassette == "record":
        trial.handler = Recorder(places, options.redact, gateway)
        return trial
    cassette = await anyio.to_thread.run_sync(read_cassette, path)
    trial.handler = Player(places, options.redact, cassette, strict=config.cassette_match == "strict")
    return trial


def _places(options: ExecutorOptions) -> Places:
    paths = {"work": options.work_dir, "trial": options.trial_dir}
    if options.assets_dir is not None:
        paths["assets"] = options.assets_dir
    paths |= {f"skill-{skill.name}": skill.path.parent for skill in options.skills}
    paths |= {name.lower(): Path(options.env[name]) for name in ("HOME", "TMPDIR") if options.env.get(name)}
    return Places(paths, options.trial_dir, options.trial_id)
