"""Which runtime process serves a trial."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vally import (
    ExecutorError,
    ExecutorOptions,
    LocalProcessRunner,
    ProcessRunner,
    agent_environment,
    canonical_json,
)
from vally_executor_copilot_sdk.client import ClientSettings, RuntimeClient
from vally_executor_copilot_sdk.config import MOST_SESSIONS, CopilotConfig
from vally_executor_copilot_sdk.environment import (
    copilot_settings,
    host_copilot_home,
    is_withheld,
    runtime_environment,
    shared_environment,
)
from vally_executor_copilot_sdk.provider import ModelAccess

if TYPE_CHECKING:
    from copilot import CopilotRequestHandler

LOGIN_HINT = "set COPILOT_GITHUB_TOKEN, GH_TOKEN or GITHUB_TOKEN, or name an endpoint of your own with 'provider'"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientChoice:
    """How to get the client of one trial: `key` is None for one of its own, `make` says how a new one is made.

    `check` is awaited with the client before it is used, and may raise `ExecutorError`.
    """

    key: Hashable | None
    make: Callable[[], ClientSettings]
    sessions: int
    access: ModelAccess
    check: Callable[[RuntimeClient], Awaitable[None]]


class ClientChooser:
    """Chooses for the trials of one run."""

    def __init__(self) -> None:
        self._numbers: Iterator[int] = itertools.count()
        self._noticed: set[str] = set()

    def choose(
        self,
        config: CopilotConfig,
        options: ExecutorOptions,
        access: ModelAccess,
        runtime: Path,
        say: Callable[[str], None],
        request_handler: CopilotRequestHandler | None = None,
    ) -> ClientChoice:
        """Raises `ExecutorError` when the settings cannot be used; `say` is told once what holds for all trials.

        With a `request_handler`, which gets the model calls of the trial in this process, no other trial may share the
        runtime.
        """
        runner = _shared_runner(config, options) if request_handler is None else None
        host_home = host_copilot_home(options.process_env)
        settings = copilot_settings(config.settings, options.process_env)
        if settings is not None and host_home is not None:
            raise ExecutorError("'settings' would change the user's own Copilot home", code="executor-config")
        asked = options.base_env if runner is not None else options.env
        for name in sorted(asked):
            if is_withheld(name, host_home=host_home is not None):
                options.warn(f"environment variable '{name}' is not passed on: the Copilot runtime would use it itself")

        def make() -> ClientSettings:
            directory = self._directory(options, shared=runner is not None)
            env = shared_environment(options, directory, home=config.home) if runner is not None else options.env
            return ClientSettings(
                runtime=runtime,
                directory=directory,
                copilot_home=host_home or directory / "copilot-home",
                env=runtime_environment(env, logged_in=access.stored_login, host_home=host_home is not None),
                runner=runner or options.runner,
                settings=settings,
                logged_in=access.stored_login,
                request_handler=request_handler,
            )

        return ClientChoice(
            key=_key(config, options, access, runtime) if runner is not None else None,
            make=make,
            sessions=config.sessions_per_client or min(MOST_SESSIONS, 2 * (os.cpu_count() or 1)),
            access=access,
            check=partial(self._check, access, say),
        )

    def _directory(self, options: ExecutorOptions, *, shared: bool) -> Path:
        number = next(self._numbers)
        if not shared:
            return options.trial_dir / f"copilot-{number}"
        if options.shared_dir is not None:
            return options.shared_dir / f"copilot-{number}"
        return Path(tempfile.mkdtemp(prefix="vally-copilot-"))

    async def _check(self, access: ModelAccess, say: Callable[[str], None], client: RuntimeClient) -> None:
        if access.stored_login:
            await check_login(client)
        notice = client.version_notice
        if notice is not None and notice not in self._noticed:
            self._noticed.add(notice)
            say(notice)


def standalone_settings(
    process_env: Mapping[str, str], runtime: Path, directory: Path, *, logged_in: bool
) -> ClientSettings:
    """A runtime process that belongs to no trial, such as that of a judge; `directory` is new and private.

    Its runner knows what it started: await `runner.kill_all()` after the client was closed.
    """
    host_home = host_copilot_home(process_env)
    env, _ = agent_environment(
        process_env,
        home_dir=directory / "home",
        tmp_dir=directory / "tmp",
        workspace=directory,
        spec_env={},
        assets_dir=None,
        trial_id=directory.name,
    )
    return ClientSettings(
        runtime=runtime,
        directory=directory,
        copilot_home=host_home or directory / "copilot-home",
        env=runtime_environment(env, logged_in=logged_in, host_home=host_home is not None),
        runner=LocalProcessRunner(directory.name, env, cwd=directory, owned_dirs=[directory]),
        logged_in=logged_in,
    )


async def check_login(client: RuntimeClient, hint: str = LOGIN_HINT) -> None:
    """Raise `ExecutorError` when the runtime has no login of its own; `hint` says how to get one."""
    status = await client.sdk.get_auth_status()
    if not status.isAuthenticated:
        raise ExecutorError(f"not signed in to GitHub Copilot; {hint}", code="executor-unavailable")


def _shared_runner(config: CopilotConfig, options: ExecutorOptions) -> ProcessRunner | None:
    """Who starts a process that other trials may use too; None when this trial needs one of its own."""
    own = config.clients == "per-trial" or options.assets_dir is not None
    return None if own else options.shared_runner


def _key(config: CopilotConfig, options: ExecutorOptions, access: ModelAccess, runtime: Path) -> Hashable:
    """Equal for trials that may share a process; it holds secrets and stays in memory."""
    return (
        str(runtime),
        canonical_json(dict(options.base_env)),
        config.home,
        canonical_json(config.settings),
        access.github_token,
        canonical_json(None if access.provider is None else dict(access.provider)),
    )
