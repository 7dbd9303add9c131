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
    yield CommandSpec(
        name="migrate",
        summary="rewrite older spellings in place",
        factory="vally_command_scaffold.migrate_command:migrate_command",
    )
    yield CommandSpec(
        name="completion",
        summary="print or install a completion script for a shell",
        factory="vally_command_scaffold.completion_command:completion_command",
    )
