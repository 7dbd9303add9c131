"""The records of this distribution."""

from __future__ import annotations

from collections.abc import Iterable

from vally import CommandSpec, hookimpl

vally_api = 1


@hookimpl
def vally_commands() -> Iterable[CommandSpec]:
    """Provide the commands that look at stored runs."""
    yield CommandSpec(
        name="show",
        summary="show a stored run, or what happened in one of its trials",
        factory="vally_command_inspect_runs.show_command:show_command",
    )
    yield CommandSpec(
        name="runs",
        summary="list stored runs, the newest first",
        factory="vally_command_inspect_runs.runs_command:runs_command",
    )
    yield CommandSpec(
        name="rejudge",
        summary="ask judges again that ended with an error in a stored run",
        factory="vally_command_inspect_runs.rejudge_command:rejudge_command",
    )
