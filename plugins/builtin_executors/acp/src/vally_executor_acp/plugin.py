"""The executor `acp`."""

from __future__ import annotations

from collections.abc import Iterable

from vally import Capabilities, ExecutorSpec, hookimpl

vally_api = 1


@hookimpl
def vally_executors() -> Iterable[ExecutorSpec]:
    """Yield the executor of this distribution."""
    yield ExecutorSpec(
        name="acp",
        summary="any agent that speaks the Agent Client Protocol, such as Copilot, Claude, Codex, Gemini, opencode",
        factory="vally_executor_acp.executor:AcpExecutor",
        config="vally_executor_acp.config:AcpConfig",
        blocking=False,
        capabilities=Capabilities(
            multi_turn=True,
            turn_completion=True,
            mcp=True,
            skills=True,
            env=True,
            attachments=True,
            isolation=True,
        ),
        enabled_by={"skills": "'skillsDir'", "model": "'{model}' in 'command' or in a value of 'env'"},
    )
