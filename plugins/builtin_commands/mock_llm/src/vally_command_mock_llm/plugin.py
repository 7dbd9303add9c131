"""The command `mock-llm`."""

from __future__ import annotations

from collections.abc import Iterable

from vally import CommandSpec, hookimpl

vally_api = 1


@hookimpl
def vally_commands() -> Iterable[CommandSpec]:
    """Yield the command of this distribution."""
    yield CommandSpec(
        name="mock-llm",
        summary="run a model server that answers what its prompts say",
        factory="vally_command_mock_llm.command:command",
    )
