"""One runtime process behind the SDK: starting it, noticing its end, ending it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from vally import ExecutorError, ProcessRunner, ProcessStartError
from vally_executor_copilot_sdk.failures import crash, start_failure
from vally_executor_copilot_sdk.native import Native
from vally_executor_copilot_sdk.runtime import OLDEST_TESTED, is_tested

if TYPE_CHECKING:
    from copilot import CopilotClient, CopilotRequestHandler, CopilotSession

START_LIMIT_S = 60.0
PING_EVERY_S = 0.5
PING_LIMIT_S = 5.0
UNANSWERED_PINGS = 3
STOP_LIMIT_S = 5.0
EXIT_LIMIT_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """What makes a runtime process.

    `directory` is private and removed at the end; `copilot_home` lies in it unless it is the user's own. `env` is the
    complete environment, `runner` starts the process. Without `logged_in` the runtime uses no stored login. A
    `request_handler` gets all model calls in this process, and the runtime then makes none.
    """

    runtime: Path
    directory: Path
    copilot_home: Path
    env: Mapping[str, str] = field(repr=False)
    runner: ProcessRunner
    settings: Mapping[str, Any] | None = None
    logged_in: bool = False
    request_handler: CopilotRequestHandler | None = None


class RuntimeClient:
    """A runtime process and its connection; many sessions may share it.

    `version` is that of the runtime and `version_notice` what is to be said about it, `sdk_version` that of the SDK;
    all known after `start`. `failure` is why it can be used no more.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self.version = ""
        self.sdk_version = ""
        self.version_notice: str | None = None
        self.failure: ExecutorError | None = None
        self._failed = anyio.Event()
        self._sdk: CopilotClient | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._listeners: dict[str, Callable[[Native], None]] = {}

    @property
    def sdk(self) -> CopilotClient:
        """The SDK's client, once started."""
        assert self._sdk is not None, "the client was not started"
        return self._sdk

    async def start(self) -> None:
        """Start the process and check that SDK and runtime fit; raises `ExecutorError`."""
        await anyio.to_thread.run_sync(_prepare, self.settings)
        try:
            self._sdk = await self._connected()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.close()
            raise
        self._watcher = asyncio.create_task(self._watch(self._sdk))

    async def create_session(
        self, *, session_id: str, on_unreadable: Callable[[Native], None], **arguments: Any
    ) -> CopilotSession:
        """A new session; raises what the SDK raises. `on_unreadable` gets events that the SDK cannot read."""
        self._listeners[session_id] = on_unreadable
        return await self.sdk.create_session(session_id=session_id, **arguments)

    async def delete_session(self, session_id: str, session: CopilotSession | None) -> None:
        """End a session and remove what the runtime keeps of it; trouble is none of the trial's."""
        self._listeners.pop(session_id, None)
        if self.failure is not None or self._sdk is None:
            return
        with anyio.move_on_after(STOP_LIMIT_S):
            with contextlib.suppress(Exception):
                if session is not None:
                    await session.disconnect()
            with contextlib.suppress(Exception):
                await self.sdk.delete_session(session_id)

    async def wait_failed(self) -> ExecutorError:
        """Return why the process can be used no more, once that is so."""
        await self._failed.wait()
        assert self.failure is not None
        return self.failure

    async def failure_behind(self, error: Exception) -> ExecutorError | None:
        """Tell whether a call failed because the process ended, which is noticed in a moment."""
        with anyio.move_on_after(2 * PING_EVERY_S + 0.2):
            return await self.wait_failed()
        return None

    async def close(self) -> None:
        """End the process and remove its directory; may be called again."""
        self._fail(ExecutorError("the Copilot runtime was shut down", code="session-lost", retryable=True))
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.cancel()
        sdk, self._sdk = self._sdk, None
        if sdk is not None:
            await _stop(sdk, _process_of(sdk))
        await anyio.to_thread.run_sync(_remove, self.settings.directory)

    async def _connected(self) -> CopilotClient:
        self.sdk_version = await anyio.to_thread.run_sync(_load_sdk)
        sdk = self._make()
        starting = asyncio.create_task(sdk.start())
        # The first step of it makes the process, and a start that fails forgets it.
        await asyncio.sleep(0)
        process = _process_of(sdk)
        try:
            with anyio.fail_after(START_LIMIT_S):
                await starting
                self._guard(sdk)
                status = await sdk.get_status()
        except BaseException as error:
            starting.cancel()
            with anyio.CancelScope(shield=True):
                await _stop(sdk, process)
            if isinstance(error, Exception):
                raise start_failure(error) from None
            raise
        self.version = status.version
        if not is_tested(status.version):
            self.version_notice = (
                f"the Copilot runtime {status.version} is older than those that were tested ({OLDEST_TESTED} and later)"
            )
        return sdk

    def _make(self) -> CopilotClient:
        from copilot import CopilotClient, RuntimeConnection

        settings = self.settings
        try:
            argv, env = settings.runner.wrap([str(settings.runtime)], cwd=settings.directory, env=settings.env)
        except ProcessStartError as error:
            raise ExecutorError(f"the Copilot runtime: {error.message}", code="executor-unavailable") from None
        return CopilotClient(
            connection=RuntimeConnection.for_stdio(path=argv[0], args=argv[1:]),
            env=env,
            base_directory=str(settings.copilot_home),
            working_directory=str(settings.directory),
            use_logged_in_user=settings.logged_in,
            log_level="error",
            request_handler=settings.request_handler,
        )

    def _guard(self, sdk: CopilotClient) -> None:
        """Take what the SDK fails to read, such as a value that it does not know; it would be lost with a traceback."""
        rpc = getattr(sdk, "_client", None)
        handle = getattr(rpc, "notification_handler", None)
        if rpc is None or handle is None:
            return

        def guarded(method: str, params: dict[str, Any]) -> None:
            try:
                handle(method, params)
            except Exception:
                listener = self._listeners.get(str(params.get("sessionId")))
                event = params.get("event")
                if listener is not None and isinstance(event, dict) and isinstance(event.get("type"), str):
                    listener(event)

        rpc.set_notification_handler(guarded)

    async def _watch(self, sdk: CopilotClient) -> None:
        unanswered = 0
        while unanswered < UNANSWERED_PINGS:
            await asyncio.sleep(PING_EVERY_S)
            try:
                await asyncio.wait_for(sdk.ping(), PING_LIMIT_S)
                unanswered = 0
            except TimeoutError:
                unanswered += 1
            except Exception as error:
                self._fail(crash(error, await _exit_code(_process_of(sdk))))
                return
        message = f"the Copilot runtime did not answer {UNANSWERED_PINGS} times in a row"
        self._fail(ExecutorError(message, code="session-lost", retryable=True))

    def _fail(self, error: ExecutorError) -> None:
        if self.failure is None:
            self.failure = error
            self._failed.set()


def _prepare(settings: ClientSettings) -> None:
    for path in (settings.directory, settings.copilot_home):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in ("HOME", "TMPDIR"):
        # Those that lie elsewhere are of the trial or of the user, and not made here.
        if settings.directory in Path(settings.env.get(name, "")).parents:
            Path(settings.env[name]).mkdir(parents=True, exist_ok=True)
    if settings.settings is not None:
        file = settings.copilot_home / "settings.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(settings.settings), encoding="utf-8")


def _remove(directory: Path) -> None:
    # What a dying process still writes is removed with the directory of the run.
    shutil.rmtree(directory, ignore_errors=True)


async def _stop(sdk: CopilotClient, process: subprocess.Popen[bytes] | None) -> None:
    try:
        with anyio.fail_after(STOP_LIMIT_S):
            await sdk.stop()
    except Exception:
        with contextlib.suppress(Exception):
            await sdk.force_stop()
    # The SDK leaves the pipes of its process open.
    for pipe in () if process is None else (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _process_of(sdk: CopilotClient) -> subprocess.Popen[bytes] | None:
    found = getattr(sdk, "_cli_process", None)
    return found if isinstance(found, subprocess.Popen) else None


async def _exit_code(process: subprocess.Popen[bytes] | None) -> int | None:
    """The exit code of a process that closed its pipes, which the system may know a moment later."""
    if process is None:
        return None
    with anyio.move_on_after(EXIT_LIMIT_S):
        while process.poll() is None:
            await asyncio.sleep(0.01)
    return process.returncode


def _load_sdk() -> str:
    """Import the SDK, which takes a second, and silence its log; returns its version.

    What goes wrong is raised; the log would print it a second time, with tracebacks.
    """
    import copilot

    logging.getLogger(copilot.__name__).setLevel(logging.CRITICAL + 1)
    return copilot.__version__
