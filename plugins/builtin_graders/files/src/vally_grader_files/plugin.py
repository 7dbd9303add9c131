"""The records of this plugin."""

from __future__ import annotations

from collections.abc import Iterator

from vally import GraderSpec, hookimpl

vally_api = 1
_PACKAGE = "vally_grader_files"


# Keyword, what it checks, implementation and config model.
_KEYWORDS = (
    (
        "file-exists",
        "a path or glob matches something in the artifacts or the workspace",
        "file_exists:FileExists",
        "Exists",
    ),
    (
        "file-not-exists",
        "a path or glob matches nothing in the artifacts or the workspace",
        "file_exists:FileNotExists",
        "NotExists",
    ),
    ("file-contains", "a literal text occurs in matching files", "file_contains:FileContains", "Contains"),
    (
        "file-not-contains",
        "a literal text is missing from matching files",
        "file_contains:FileNotContains",
        "NotContains",
    ),
    ("file-matches", "a regular expression matches in matching files", "file_matches:FileMatches", "Matches"),
    (
        "file-not-matches",
        "a regular expression matches in no matching file",
        "file_matches:FileNotMatches",
        "NotMatches",
    ),
)


@hookimpl
def vally_graders() -> Iterator[GraderSpec]:
    """One record per keyword."""
    for name, summary, factory, config in _KEYWORDS:
        yield GraderSpec(
            name=name,
            summary=summary,
            factory=f"{_PACKAGE}.{factory}",
            config=f"{_PACKAGE}.config:{config}Config",
            requires_workspace=True,
        )
