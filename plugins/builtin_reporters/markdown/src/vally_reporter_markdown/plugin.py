"""The record of this distribution."""

from __future__ import annotations

from collections.abc import Iterable

from vally import ReporterSpec, hookimpl

vally_api = 1


@hookimpl
def vally_reporters() -> Iterable[ReporterSpec]:
    """Provide the report as a Markdown file."""
    yield ReporterSpec(
        name="markdown",
        summary="write eval-results.md into the run directory",
        factory="vally_reporter_markdown.reporter:MarkdownReporter",
        order=30,
        kinds=("eval", "experiment"),
        files={"Markdown": "eval-results.md"},
        notice_s=1.0,
    )
