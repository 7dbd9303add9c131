"""The records of this distribution."""

from __future__ import annotations

from collections.abc import Iterable

from vally import CommandSpec, hookimpl

vally_api = 1


@hookimpl
def vally_commands() -> Iterable[CommandSpec]:
    """Provide `vally ingest` and `vally serve`."""
    yield CommandSpec(
        name="ingest",
        summary="read run directories into a store",
        factory="vally_command_results.ingest_command:command",
    )
    yield CommandSpec(
        name="serve",
        summary="serve an HTTP API and a dashboard over results",
        factory="vally_command_results.serve_command:command",
    )
