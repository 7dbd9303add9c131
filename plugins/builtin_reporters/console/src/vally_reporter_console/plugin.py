"""The record of this distribution."""

from __future__ import annotations

from collections.abc import Iterable

from vally import ReporterSpec, hookimpl

vally_api = 1


@hookimpl
def vally_reporters() -> Iterable[ReporterSpec]:
    """Provide the report for people."""
    yield ReporterSpec(
        name="console",
        summary="cards, progress and a summary in the terminal",
        factory="vally_reporter_console.reporter:ConsoleReporter",
        order=20,
        kinds=("eval", "experiment"),
        shows_stored_runs=True,
        notice_s=1.0,
    )
