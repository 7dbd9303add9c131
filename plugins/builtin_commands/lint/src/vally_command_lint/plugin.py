"""The record of this distribution."""

from __future__ import annotations

from collections.abc import Iterable

from vally import CommandSpec, hookimpl

vally_api = 1


@hookimpl
def vally_commands() -> Iterable[CommandSpec]:
    """Provide `vally lint`."""
    yield CommandSpec(
        name="lint",
        summary="check skills and evals without running anything",
        factory="vally_command_lint.command:command",
        function="vally_command_lint.library:validate",
    )
