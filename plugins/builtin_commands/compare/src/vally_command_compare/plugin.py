"""The record of this distribution."""

from __future__ import annotations

from collections.abc import Iterable

from vally import CommandSpec, hookimpl

vally_api = 1


@hookimpl
def vally_commands() -> Iterable[CommandSpec]:
    """Provide `vally compare`."""
    yield CommandSpec(
        name="compare",
        summary="compare two runs, judged head to head",
        factory="vally_command_compare.command:command",
    )
