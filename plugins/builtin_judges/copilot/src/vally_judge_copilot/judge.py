"""The judge: sessions of the Copilot runtime."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from vally import ExecutorError, JudgeError, JudgeReply, JudgeRequest, ProviderConfig, RunContext, ToolSchema, ask_judge
from vally_executor_copilot_sdk import (
    MOST_SESSIONS,
    ClientPool,
    ClientSettings,
    Places,
    RuntimeClient,
    check_login,
    find_runtime,
    standalone_settings,
)
from vally_judge_copilot.access import LOGIN_HINT, Access
from vally_judge_copilot.conversation import SessionConversation

PREFLIGHT_TIMEOUT_S = 30.0


class CopilotJudge:
    """Asks each question in a session of its own; few runtime processes serve them all.

    Without a provider the user's subscription is used. Needs asyncio, as the SDK does.
    """

    def __init__(self) -> None:
        self._context: RunContext | None = None
        self._access: Access | None = None
        self._pool = ClientPool()
        self._settings: list[ClientSettings] = []
        self._runtime: asyncio.Task[Path] | None = None

    def prepare(self, context: RunContext) -> None:
        """Remember where the runtime and the login are looked for."""
        self._context = context

    def configure(self, provider: ProviderConfig | None) -> None:
        """Take the endpoint, or the subscription; raises `JudgeError` when nothing is known of the run."""
        if self._context is None:
            raise JudgeError("judge 'copilot' was not told of the run it belongs to", kind="unavailable")
        self._access = Access(provider, self._context.process_env)

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """Ask one question; raises `JudgeError`. Starting the runtime is not part of the question's time."""
        async with self._client(request.timeout_s) as (client, access):
            directory = request.evidence_dir or client.settings.directory / "nothing"
            conversation = SessionConversation(request, client, access, directory)
            try:
                return await ask_judge(request, conversation)
            finally:
                await conversation.close()

    async def preflight(self, model: str) -> None:
        """Let the model submit one word; raises `JudgeError` when it does not."""
        word = {"type": "object", "properties": {"word": {"type": "string"}}}
        request = JudgeRequest(
            model=model,
            system_message="You are asked whether you can answer.",
            user_message="Submit the word ok.",
            tool=ToolSchema(name="submit", description="Submits a word.", parameters=word),
            timeout_s=PREFLIGHT_TIMEOUT_S,
            max_reminders=0,
        )
        try:
            await self.judge(request)
        except JudgeError as error:
            # A model that answers otherwise is there.
            if error.kind != "malformed":
                raise

    async def shutdown(self) -> None:
        """End every runtime process."""
        await self._pool.shutdown()
        while self._settings:
            await self._settings.pop().runner.kill_all()

    @asynccontextmanager
    async def _client(self, limit_s: float) -> AsyncIterator[tuple[RuntimeClient, Access]]:
        """A started runtime that is logged in; raises `JudgeError`."""
        context, access = self._context, self._access
        if context is None or access is None:
            raise JudgeError("the judge is not configured", kind="unavailable")
        async with AsyncExitStack() as stack:
            try:
                with anyio.fail_after(limit_s):
                    runtime = await self._found(context)
                    make = partial(self._make, context, access, runtime)
                    client = await stack.enter_async_context(self._pool.lease("", make, sessions=MOST_SESSIONS))
                    if access.stored_login:
                        await check_login(client, LOGIN_HINT)
            except ExecutorError as error:
                raise JudgeError(error.message, kind="unavailable") from error
            except TimeoutError:
                raise JudgeError(f"the Copilot runtime did not start within {limit_s:g}s", kind="timeout") from None
            yield client, access

    async def _found(self, context: RunContext) -> Path:
        if self._runtime is None:
            places = Places(context.process_env, cache=context.cache_dir, project=context.project_root)
            search = anyio.to_thread.run_sync(find_runtime, None, places, context.on_warning)
            self._runtime = asyncio.create_task(search)
        return await asyncio.shield(self._runtime)

    def _make(self, context: RunContext, access: Access, runtime: Path) -> ClientSettings:
        directory = Path(tempfile.mkdtemp(prefix="vally-copilot-"))
        settings = standalone_settings(context.process_env, runtime, directory, logged_in=access.stored_login)
        (directory / "nothing").mkdir()
        self._settings.append(settings)
        return settings
