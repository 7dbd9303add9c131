"""The record of this distribution."""

from __future__ import annotations

from collections.abc import Iterable

from vally import CommandSpec, hookimpl

vally_api = 1


@hookimpl
def vally_commands() -> Iterable[CommandSpec]:
    """Provide `vally experiment`."""
    yield CommandSpec(
        name="experiment",
        summary="run evals in variants, and merge shards",
        factory="vally_command_experiment.command:command",
    )
