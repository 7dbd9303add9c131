"""The executor `copilot-sdk`."""

from __future__ import annotations

from collections.abc import Iterable

from vally import Capabilities, ExecutorSpec, hookimpl

vally_api = 1


@hookimpl
def vally_executors() -> Iterable[ExecutorSpec]:
    """Yield the executor of this distribution."""
    yield ExecutorSpec(
        name="copilot-sdk",
        summary="runs GitHub Copilot through its SDK, with your subscription or any model endpoint",
        factory="vally_executor_copilot_sdk.executor:CopilotExecutor",
        config="vally_executor_copilot_sdk.config:CopilotConfig",
        blocking=False,
        capabilities=Capabilities(
            multi_turn=True,
            turn_completion=True,
            mcp=True,
            skills=True,
            env=True,
            attachments=True,
            simulation=True,
            reasoning_effort=True,
            isolation=True,
            session_log=True,
        ),
    )
