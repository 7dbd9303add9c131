"""The record of this distribution."""

from __future__ import annotations

from collections.abc import Iterable

from vally import CommandSpec, hookimpl

vally_api = 1


@hookimpl
def vally_commands() -> Iterable[CommandSpec]:
    """Provide `vally oracle`."""
    yield CommandSpec(
        name="oracle",
        summary="prove that graders accept golden inputs and reject their absence",
        factory="vally_command_oracle.command:command",
    )
