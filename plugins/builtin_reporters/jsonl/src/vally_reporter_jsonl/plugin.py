"""The record of this distribution."""

from __future__ import annotations

from collections.abc import Iterable

from vally import ReporterSpec, hookimpl

vally_api = 1


@hookimpl
def vally_reporters() -> Iterable[ReporterSpec]:
    """Provide the reporter of machine output."""
    yield ReporterSpec(
        name="jsonl",
        summary="write the lines of results.jsonl to stdout with --output jsonl",
        factory="vally_reporter_jsonl.reporter:JsonlReporter",
        order=10,
        kinds=("eval", "experiment"),
        notice_s=1.0,
    )
