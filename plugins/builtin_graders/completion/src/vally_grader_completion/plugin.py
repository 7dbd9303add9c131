"""The records of this plugin."""

from __future__ import annotations

from collections.abc import Iterator

from vally import GraderSpec, hookimpl

vally_api = 1
_PACKAGE = "vally_grader_completion"


@hookimpl
def vally_graders() -> Iterator[GraderSpec]:
    """One record per keyword."""
    yield GraderSpec(
        name="completed",
        summary="the session ended properly: an answer, no errors, a finished turn",
        factory=f"{_PACKAGE}.completed:Completed",
        cost="free",
        blocking=False,
    )
    yield GraderSpec(
        name="exit-success",
        summary="the agent said something",
        factory=f"{_PACKAGE}.exit_success:ExitSuccess",
        cost="free",
        blocking=False,
    )
