"""The records of this plugin."""

from __future__ import annotations

from collections.abc import Iterator

from vally import GraderSpec, hookimpl

vally_api = 1
_PACKAGE = "vally_grader_diff"


@hookimpl
def vally_graders() -> Iterator[GraderSpec]:
    """One record per keyword."""
    yield GraderSpec(
        name="diff-contains",
        summary="the change to the workspace has a text or matches a regular expression",
        factory=f"{_PACKAGE}.diff_contains:DiffContains",
        config=f"{_PACKAGE}.diff_contains:DiffContainsConfig",
        determinism="complex-static",
        scope=False,
        oracle="state",
    )
    yield GraderSpec(
        name="diff-not-contains",
        summary="the change to the workspace lacks a text or does not match a regular expression",
        factory=f"{_PACKAGE}.diff_contains:DiffNotContains",
        config=f"{_PACKAGE}.diff_contains:DiffNotContainsConfig",
        determinism="complex-static",
        scope=False,
        oracle="state",
    )
    yield GraderSpec(
        name="diff-empty",
        summary="nothing in the workspace was changed",
        factory=f"{_PACKAGE}.diff_empty:DiffEmpty",
        config=f"{_PACKAGE}.diff_empty:DiffEmptyConfig",
        determinism="complex-static",
        scope=False,
        oracle="state",
    )
