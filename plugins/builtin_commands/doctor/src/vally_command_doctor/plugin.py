"""The record of this distribution."""

from __future__ import annotations

from collections.abc import Iterable

from vally import CommandSpec, hookimpl

vally_api = 1


@hookimpl
def vally_commands() -> Iterable[CommandSpec]:
    """Provide `vally doctor`."""
    yield CommandSpec(
        name="doctor",
        summary="tell what of the installation can start, and what is missing for the rest",
        factory="vally_command_doctor.command:command",
    )
