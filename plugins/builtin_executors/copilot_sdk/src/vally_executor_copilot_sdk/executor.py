"""Running GitHub Copilot."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from vally import (
    AgentNetwork,
    ExecutorOptions,
    RunContext,
    Stimulus,
    Trajectory,
    known_servers,
)
from vally_executor_copilot_sdk.cassette_trial import open_cassette
from vally_executor_copilot_sdk.client import RuntimeClient
from vally_executor_copilot_sdk.clients import ClientChooser, check_login, standalone_settings
from vally_executor_copilot_sdk.config import CopilotConfig
from vally_executor_copilot_sdk.environment import github_token
from vally_executor_copilot_sdk.hermetic import check_hermetic, is_hermetic, placeholder_access
from vally_executor_copilot_sdk.pool import ClientPool
from vally_executor_copilot_sdk.provider import ModelAccess, model_access
from vally_executor_copilot_sdk.runtime import Places, find_runtime, installed_runtime
from vally_executor_copilot_sdk.trial import Trial

if TYPE_CHECKING:
    from copilot import CopilotRequestHandler

    from vally_executor_copilot_sdk.forwarding import Gateway


class CopilotExecutor:
    """Runs sessions of the Copilot runtime; see `CopilotConfig`.

    Needs asyncio, as the SDK does. The runtime is looked for once per run.
    """

    def __init__(self) -> None:
        self.pool = ClientPool()
        self._chooser = ClientChooser()
        self._context: RunContext | None = None
        self._runtimes: dict[Path | None, asyncio.Task[Path]] = {}
        self._said: set[str] = set()

    def configure(self, context: RunContext) -> None:
        """Remember what is known of the run."""
        self._context = context

    def host_paths(self, config: CopilotConfig) -> Sequence[Path]:
        """The directory of the runtime."""
        found = installed_runtime(config.cli_path, self._places(None))
        if found is None:
            return []
        # The small runtime needs what was unpacked beside it.
        whole = [parent for parent in found.parents if (parent / "prebuilds").is_dir()]
        return [whole[0] if whole else found.parent]

    def check_network(self, config: CopilotConfig, stimulus: Stimulus, network: AgentNetwork) -> None:
        """Raise `ExecutorError` for what needs more of the network than the agent has."""
        check_hermetic(config, self._places(None).process_env, known_servers(stimulus), network)

    async def execute(self, stimulus: Stimulus, options: ExecutorOptions) -> Trajectory:
        """Run every turn of the stimulus in a session of its own."""
        config = _config(options)
        hermetic = is_hermetic(options)
        check_hermetic(config, options.process_env, options.mcp_servers, options.runner.network)
        if config.provider is not None and config.provider.notice is not None:
            self._say_once(config.provider.notice, options)
        access = model_access(config.provider, options)
        runtime = await self._runtime(config.cli_path, options)
        if not hermetic:
            return await self._run(config, stimulus, options, access, runtime)
        async with _gateway(access, options) as gateway:
            return await self._run(config, stimulus, options, placeholder_access(access), runtime, gateway)

    async def _run(
        self,
        config: CopilotConfig,
        stimulus: Stimulus,
        options: ExecutorOptions,
        access: ModelAccess,
        runtime: Path,
        gateway: Gateway | None = None,
    ) -> Trajectory:
        cassette = await open_cassette(config, stimulus, options, access.model, gateway)
        choice = self._chooser.choose(
            config,
            options,
            access,
            runtime,
            lambda text: self._say_once(text, options),
            self._handler(config, options, gateway) if cassette is None else cassette.handler,
        )
        told = options if gateway is None else replace(options, redact=gateway.named)
        trial = Trial(config, stimulus, told, self.pool, choice)
        return await (trial.run() if cassette is None else cassette.run(trial.run))

    def _handler(
        self, config: CopilotConfig, options: ExecutorOptions, gateway: Gateway | None
    ) -> CopilotRequestHandler | None:
        own = self.request_handler(config, options)
        if own is not None or gateway is None:
            return own
        from vally_executor_copilot_sdk.forwarding import Forwarder

        return Forwarder(gateway)

    def request_handler(self, config: CopilotConfig, options: ExecutorOptions) -> CopilotRequestHandler | None:
        """Who gets the model calls of a trial in this process; None lets the runtime make them itself.

        Subclasses that observe, answer or forward them return a handler of the SDK. Where the agent has no network,
        requests name a placeholder for the endpoint and its key, and None passes them on to the real ones.
        """
        return None

    async def preflight(self, config: CopilotConfig) -> str:
        """Start a runtime and look for a login; says what was started."""
        places = self._places(None)
        runtime = await anyio.to_thread.run_sync(find_runtime, config.cli_path, places, self._warn)
        directory = Path(await anyio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="vally-copilot-")))
        logged_in = config.provider is None and github_token(places.process_env) is None
        client = RuntimeClient(standalone_settings(places.process_env, runtime, directory, logged_in=logged_in))
        try:
            await client.start()
            if logged_in:
                await check_login(client)
        finally:
            with anyio.CancelScope(shield=True):
                await client.close()
                await client.settings.runner.kill_all()
        return f"Copilot runtime {client.version} ({runtime})"

    async def shutdown(self) -> None:
        """End every runtime process."""
        await self.pool.shutdown()

    def _places(self, options: ExecutorOptions | None) -> Places:
        context = self._context
        env: Mapping[str, str] = {}
        if options is not None and options.process_env:
            env = options.process_env
        elif context is not None:
            env = context.process_env
        return Places(
            process_env=env,
            cache=None if context is None else context.cache_dir,
            project=None if context is None else context.project_root,
        )

    async def _runtime(self, cli_path: Path | None, options: ExecutorOptions) -> Path:
        task = self._runtimes.get(cli_path)
        if task is None:
            places = self._places(options)
            search = anyio.to_thread.run_sync(find_runtime, cli_path, places, self._warn)
            task = self._runtimes[cli_path] = asyncio.create_task(search)
        return await asyncio.shield(task)

    def _say_once(self, text: str, options: ExecutorOptions) -> None:
        if text not in self._said:
            self._said.add(text)
            if self._context is not None:
                self._context.on_warning(text)
            else:
                options.log.warning(text)

    def _warn(self, text: str) -> None:
        if self._context is not None:
            self._context.on_warning(text)


def _config(options: ExecutorOptions) -> CopilotConfig:
    return options.executor_config if isinstance(options.executor_config, CopilotConfig) else CopilotConfig()


@asynccontextmanager
async def _gateway(access: ModelAccess, options: ExecutorOptions) -> AsyncIterator[Gateway]:
    from vally_executor_copilot_sdk.forwarding import Gateway

    assert access.provider is not None
    gateway = Gateway(access.provider, options.redact)
    try:
        yield gateway
    finally:
        with anyio.CancelScope(shield=True):
            await gateway.close()
