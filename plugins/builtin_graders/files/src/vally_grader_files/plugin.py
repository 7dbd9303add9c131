"""The records of this plugin."""

from __future__ import annotations

from collections.abc import Iterator

from vally import GraderSpec, hookimpl

vally_api = 1
_PACKAGE = "vally_grader_files"


@hookimpl
def vally_graders() -> Iterator[GraderSpec]:
    """One record per keyword."""
    yield GraderSpec(
        name="file-exists",
        summary="a path or glob matches something in the artifacts or the workspace",
        factory=f"{_PACKAGE}.file_exists:FileExists",
        config=f"{_PACKAGE}.config:ExistsConfig",
        requires_workspace=True,
    )
    yield GraderSpec(
        name="file-not-exists",
        summary="a path or glob matches nothing in the artifacts or the workspace",
        factory=f"{_PACKAGE}.file_exists:FileNotExists",
        config=f"{_PACKAGE}.config:NotExistsConfig",
        requires_workspace=True,
    )
    yield GraderSpec(
        name="file-contains",
        summary="a literal text occurs in matching files",
        factory=f"{_PACKAGE}.file_contains:FileContains",
        config=f"{_PACKAGE}.config:ContainsConfig",
        requires_workspace=True,
    )
    yield GraderSpec(
        name="file-not-contains",
        summary="a literal text is missing from matching files",
        factory=f"{_PACKAGE}.file_contains:FileNotContains",
        config=f"{_PACKAGE}.config:NotContainsConfig",
        requires_workspace=True,
    )
    yield GraderSpec(
        name="file-matches",
        summary="a regular expression matches in matching files",
        factory=f"{_PACKAGE}.file_matches:FileMatches",
        config=f"{_PACKAGE}.config:MatchesConfig",
        requires_workspace=True,
    )
    yield GraderSpec(
        name="file-not-matches",
        summary="a regular expression matches in no matching file",
        factory=f"{_PACKAGE}.file_matches:FileNotMatches",
        config=f"{_PACKAGE}.config:NotMatchesConfig",
        requires_workspace=True,
    )
