"""The records of this plugin."""

from __future__ import annotations

from collections.abc import Iterator

from vally import GraderSpec, hookimpl

vally_api = 1
_PACKAGE = "vally_grader_panel"


@hookimpl
def vally_graders() -> Iterator[GraderSpec]:
    """One record per keyword."""
    yield GraderSpec(
        name="panel",
        summary="several models score the run against the rubric",
        factory=f"{_PACKAGE}.panel:Panel",
        config=f"{_PACKAGE}.config:PanelConfig",
        kind="llm",
        determinism="llm",
        cost="high",
        requires_judge=True,
    )
