"""The record of this distribution."""

from __future__ import annotations

from collections.abc import Iterable

from vally import ReporterSpec, hookimpl

vally_api = 1


@hookimpl
def vally_reporters() -> Iterable[ReporterSpec]:
    """Provide the report for CI systems that read JUnit files."""
    yield ReporterSpec(
        name="junit",
        summary="write eval-results.junit.xml into the run directory",
        factory="vally_reporter_junit.reporter:JunitReporter",
        order=40,
        option="junit",
        option_file=True,
        kinds=("eval", "experiment"),
        files={"JUnit": "eval-results.junit.xml"},
        notice_s=1.0,
    )
