"""The records of this distribution."""

from __future__ import annotations

from collections.abc import Iterable

from vally import CommandSpec, hookimpl

vally_api = 1


@hookimpl
def vally_commands() -> Iterable[CommandSpec]:
    """Provide `vally ingest`."""
    yield CommandSpec(
        name="ingest",
        summary="read run directories into a store",
        factory="vally_command_results.ingest_command:command",
    )
