"""The executor `command`."""

from __future__ import annotations

from collections.abc import Iterable

from vally import Capabilities, ExecutorSpec, hookimpl

vally_api = 1


@hookimpl
def vally_executors() -> Iterable[ExecutorSpec]:
    """Yield the executor of this distribution."""
    yield ExecutorSpec(
        name="command",
        summary="runs any agent that has a command line",
        factory="vally_executor_command.executor:CommandExecutor",
        config="vally_executor_command.config:CommandConfig",
        blocking=False,
        capabilities=Capabilities(
            multi_turn=True,
            turn_completion=True,
            mcp=True,
            skills=True,
            env=True,
            reasoning_effort=True,
            isolation=True,
            session_log=True,
        ),
        enabled_by={
            "skills": "'skillsDir'",
            "mcp": "'{mcp_config}' in 'command'",
            "multi_turn": "'continueCommand'",
            "turn_completion": "'continueCommand'",
            "reasoning_effort": "'{reasoning_effort}' in 'command'",
        },
    )
