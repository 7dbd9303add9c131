"""The executor `mock`."""

from __future__ import annotations

from collections.abc import Iterable

from vally import Capabilities, ExecutorSpec, hookimpl

vally_api = 1


@hookimpl
def vally_executors() -> Iterable[ExecutorSpec]:
    """Yield the executor of this distribution."""
    yield ExecutorSpec(
        name="mock",
        summary="echoes the prompt or replays a fixture; no process, no network",
        factory="vally_executor_mock.executor:MockExecutor",
        config="vally_executor_mock.config:MockConfig",
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
