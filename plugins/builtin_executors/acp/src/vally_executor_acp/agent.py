"""One agent process and the connection to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import acp
import anyio
from acp.connection import Connection
from acp.meta import AGENT_METHODS, CLIENT_METHODS
from acp.schema import ClientCapabilities, FileSystemCapabilities, Implementation, InitializeRequest

from vally import ExecutorError, Process, ProcessRunner, ProcessStartError, __version__
from vally_executor_acp.transport import ProcessTransport

STDERR_BYTES = 4096
DRAIN_S = 0.5
EPITAPH_S = 1.5
LAST_WORDS_S = 0.2
_NOT_STARTABLE = frozenset({"ENOENT", "EACCES", "ENOEXEC", "ENOTDIR", "EPERM"})

Params = Mapping[str, Any]


class SessionListener(Protocol):
    """What one session wants to hear."""

    def on_update(self, update: Params) -> None:
        """Something happened; called in order, and before the answer to the prompt is known."""
        ...

    async def on_permission(self, params: Params) -> dict[str, Any]:
        """The agent asks for permission; returns the answer in the protocol's form."""
        ...


class Agent:
    """A running agent; `capabilities`, `name` and `version` are what it says of itself.

    Errors of requests are `acp.RequestError`, and `ConnectionError` once the process is gone.
    """

    def __init__(self, process: Process, on_noise: Callable[[str], None]) -> None:
        self._process = process
        self._listeners: dict[str, SessionListener] = {}
        self._unheard: dict[str, list[Params]] = {}
        self._stderr = bytearray()
        transport = ProcessTransport(process, self._on_message, on_noise)
        self._connection = Connection(self._on_request, transport)
        self._exited = anyio.Event()
        self._stderr_task = _task(self._read_stderr())
        self._tasks = [self._stderr_task, _task(self._watch())]
        self.capabilities: Params = {}
        self.name = ""
        self.version: str | None = None
        self.auth_methods: tuple[str, ...] = ()
        self.ended: str | None = None

    @classmethod
    async def start(
        cls, runner: ProcessRunner, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], on_noise: Any
    ) -> Agent:
        """Start the process; raises `ExecutorError`."""
        try:
            process = await runner.start(argv, cwd=cwd, env=env)
        except ProcessStartError as error:
            missing = error.errno_name in _NOT_STARTABLE
            code = "executor-unavailable" if missing else "agent-start-failed"
            raise ExecutorError(error.message, code=code, retryable=not missing) from None
        return cls(process, on_noise)

    @property
    def stderr(self) -> str:
        """The end of what the agent wrote to stderr."""
        return self._stderr.decode("utf-8", "replace").strip()

    @property
    def alive(self) -> bool:
        """Whether the process runs, as far as is known."""
        return self.ended is None

    async def initialize(self) -> None:
        """Agree on the protocol; raises `ExecutorError` for a version that is not spoken here."""
        files = FileSystemCapabilities(read_text_file=False, write_text_file=False)
        request = InitializeRequest(
            protocol_version=acp.PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(fs=files, terminal=False),
            client_info=Implementation(name="vally", version=__version__),
        )
        told = await self.request("initialize", request.model_dump(mode="json", by_alias=True, exclude_none=True))
        version = told.get("protocolVersion")
        if version != acp.PROTOCOL_VERSION:
            raise ExecutorError(
                f"the agent speaks version {version} of the protocol, not {acp.PROTOCOL_VERSION}",
                code="executor-unavailable",
            )
        self.capabilities = mapping(told.get("agentCapabilities"))
        info = mapping(told.get("agentInfo"))
        self.name = str(info.get("name") or "")
        self.version = str(info["version"]) if info.get("version") else None
        methods = told.get("authMethods")
        self.auth_methods = tuple(str(mapping(item).get("id")) for item in methods or () if mapping(item).get("id"))

    def can(self, *path: str) -> bool:
        """Whether the agent announces a capability, such as `promptCapabilities`, `image`."""
        value: object = self.capabilities
        for name in path:
            value = mapping(value).get(name)
        return bool(value) or isinstance(value, Mapping)

    async def request(self, method: str, params: Params) -> Params:
        """Ask the agent something, by the library's name of the method."""
        return mapping(await self._connection.send_request(AGENT_METHODS[method], dict(params)))

    async def notify(self, method: str, params: Params) -> None:
        """Tell the agent something; an agent that is gone cannot hear it."""
        try:
            await self._connection.send_notification(AGENT_METHODS[method], dict(params))
        except ConnectionError:
            return

    def listen(self, session_id: str, listener: SessionListener) -> None:
        """Hear what happens in a session, also what happened before its id was known."""
        self._listeners[session_id] = listener
        for update in self._unheard.pop(session_id, ()):
            listener.on_update(update)

    def forget(self, session_id: str) -> None:
        """Hear no more of a session."""
        self._listeners.pop(session_id, None)

    async def epitaph(self) -> str:
        """What became of the process, once the connection is lost; waits for its last words."""
        with anyio.move_on_after(EPITAPH_S):
            await self._exited.wait()
        # Not cancelled when it takes longer: something the agent started may hold the pipe open.
        await asyncio.wait([self._stderr_task], timeout=LAST_WORDS_S)
        return self.ended or "closed its output"

    async def close(self) -> None:
        """End the process and everything in its session; may be called again."""
        with anyio.CancelScope(shield=True):
            try:
                await self._connection.close()
            finally:
                await self._process.terminate()
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)
                await self._process.stderr.aclose()

    def _on_message(self, message: Params) -> None:
        if message.get("method") != CLIENT_METHODS["session_update"]:
            return
        params = mapping(message.get("params"))
        session_id, update = str(params.get("sessionId")), mapping(params.get("update"))
        listener = self._listeners.get(session_id)
        if listener is not None:
            listener.on_update(update)
        else:
            self._unheard.setdefault(session_id, []).append(update)

    async def _on_request(self, method: str, params: Any, is_notification: bool) -> Any:
        if is_notification:
            return None
        listener = self._listeners.get(str(mapping(params).get("sessionId")))
        if method == CLIENT_METHODS["session_request_permission"] and listener is not None:
            return await listener.on_permission(mapping(params))
        raise acp.RequestError.method_not_found(method)

    async def _read_stderr(self) -> None:
        try:
            while True:
                self._stderr += await self._process.stderr.receive(65536)
                del self._stderr[:-STDERR_BYTES]
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    async def _watch(self) -> None:
        """Notice the end of the process, also when something it started holds its streams open."""
        done = await self._process.wait()
        self.ended = f"was ended by {done.signal}" if done.signal else f"ended with exit code {done.returncode}"
        self._exited.set()
        await asyncio.sleep(DRAIN_S)
        await self._connection.close()


async def lost(agent: Agent, code: str, redact: Callable[[str], str]) -> ExecutorError:
    """The error of an agent whose process or connection has ended, with its last words."""
    ending = await agent.epitaph()
    words = redact(agent.stderr)
    last = f": {words.splitlines()[-1].strip()[:500]}" if words else ""
    details = {"stderr": words} if words else None
    return ExecutorError(f"the agent {ending}{last}", code=code, retryable=True, details=details)


def mapping(value: object) -> Params:
    """The value when it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def _task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(work)
