"""The record of this distribution."""

from __future__ import annotations

from collections.abc import Iterable

from vally import ReporterOption, ReporterSpec, hookimpl

vally_api = 1


@hookimpl
def vally_reporters() -> Iterable[ReporterSpec]:
    """Provide what GitHub Actions shows of a run."""
    yield ReporterSpec(
        name="github",
        summary="annotations and a step summary inside GitHub Actions",
        factory="vally_reporter_github.reporter:GithubReporter",
        order=60,
        options=(
            ReporterOption(name="no-annotations", help="Print no annotations inside GitHub Actions"),
            ReporterOption(name="no-step-summary", help="Append nothing to the step summary of GitHub Actions"),
        ),
        kinds=("eval", "experiment"),
        notice_s=1.0,
    )
