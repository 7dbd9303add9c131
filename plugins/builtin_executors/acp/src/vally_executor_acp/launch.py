"""Starting an agent, until it can open sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import acp
import anyio

from vally import ExecutorError, ExecutorOptions, ProcessRunner, parse_duration
from vally_executor_acp.agent import Agent, lost
from vally_executor_acp.config import AcpConfig
from vally_executor_acp.failures import described

Noise = Callable[[str], None]


async def start(
    config: AcpConfig,
    options: ExecutorOptions,
    runner: ProcessRunner,
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
) -> Agent:
    """Start the process and agree with it; raises `ExecutorError`, and leaves no process then."""
    agent = await Agent.start(runner, argv, cwd=cwd, env=env, on_noise=_logged(options))
    try:
        await _ready(agent, config, options)
    except BaseException:
        await agent.close()
        raise
    return agent


async def end(agent: Agent) -> None:
    """End an agent that belongs to one trial."""
    await agent.close()


async def _ready(agent: Agent, config: AcpConfig, options: ExecutorOptions) -> None:
    try:
        with anyio.move_on_after(parse_duration(config.init_timeout) / 1000) as scope:
            await agent.initialize()
            if config.auth is not None:
                await _authenticate(agent, config.auth)
    except acp.RequestError as error:
        raise ExecutorError(f"the agent cannot be used: {described(error)}", code="agent-start-failed") from error
    except ConnectionError as error:
        raise await lost(agent, "agent-start-failed", options.redact) from error
    if scope.cancelled_caught:
        words = options.redact(agent.stderr)
        raise ExecutorError(
            f"the agent did not get ready within {config.init_timeout}",
            code="agent-start-failed",
            retryable=True,
            details={"stderr": words} if words else None,
        )


async def _authenticate(agent: Agent, method: str) -> None:
    try:
        await agent.request("authenticate", {"methodId": method})
    except acp.RequestError as error:
        known = f"; it knows {', '.join(agent.auth_methods)}" if agent.auth_methods else ""
        raise ExecutorError(
            f"the agent refused to authenticate by '{method}': {error}{known}", code="executor-unavailable"
        ) from error


def _logged(options: ExecutorOptions) -> Noise:
    def log(line: str) -> None:
        options.log.debug("the agent wrote a line that is no message: %s", options.redact(line[:500]))

    return log
