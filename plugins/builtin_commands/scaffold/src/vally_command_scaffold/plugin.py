"""The records of this distribution."""

from __future__ import annotations

from collections.abc import Iterable

from vally import CommandSpec, hookimpl

vally_api = 1


@hookimpl
def vally_commands() -> Iterable[CommandSpec]:
    """Provide the commands for starting, checking and moving files that users write."""
    yield CommandSpec(
        name="init",
        summary="write a starter eval, or a plugin package with tests",
        factory="vally_command_scaffold.init_command:init_command",
    )
    yield CommandSpec(
        name="schema",
        summary="print the JSON Schema of evals, project files, experiments and result records",
        factory="vally_command_scaffold.schema_command:schema_command",
    )
