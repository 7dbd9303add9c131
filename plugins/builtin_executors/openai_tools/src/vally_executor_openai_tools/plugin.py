"""The executor `openai-tools`."""

from __future__ import annotations

from collections.abc import Iterable

from vally import Capabilities, ExecutorSpec, hookimpl

vally_api = 1


@hookimpl
def vally_executors() -> Iterable[ExecutorSpec]:
    """Yield the executor of this distribution."""
    yield ExecutorSpec(
        name="openai-tools",
        summary="a small agent with a shell and file tools for any OpenAI-compatible endpoint",
        factory="vally_executor_openai_tools.executor:OpenAiToolsExecutor",
        config="vally_executor_openai_tools.config:OpenAiToolsConfig",
        blocking=False,
        capabilities=Capabilities(
            multi_turn=True,
            turn_completion=True,
            skills=True,
            env=True,
            reasoning_effort=True,
            isolation=True,
        ),
    )
