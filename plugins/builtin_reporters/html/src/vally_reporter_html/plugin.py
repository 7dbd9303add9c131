"""The record of this distribution."""

from __future__ import annotations

from collections.abc import Iterable

from vally import ReporterSpec, hookimpl

vally_api = 1


@hookimpl
def vally_reporters() -> Iterable[ReporterSpec]:
    """Provide the report for browsers."""
    yield ReporterSpec(
        name="html",
        summary="write eval-results.html into the run directory",
        factory="vally_reporter_html.reporter:HtmlReporter",
        order=35,
        option="html",
        kinds=("eval", "experiment"),
        files={"HTML": "eval-results.html"},
        notice_s=1.0,
    )
