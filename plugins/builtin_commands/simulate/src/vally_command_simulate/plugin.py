"""The record of this distribution."""

from __future__ import annotations

from collections.abc import Iterable

from vally import CommandSpec, hookimpl

vally_api = 1


@hookimpl
def vally_commands() -> Iterable[CommandSpec]:
    """Provide `vally simulate record`."""
    yield CommandSpec(
        name="simulate",
        summary="make tool overrides from what tools answered in a recorded run",
        factory="vally_command_simulate.command:command",
    )
