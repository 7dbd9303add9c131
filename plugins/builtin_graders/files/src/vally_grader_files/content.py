"""What the keywords that read files share: candidates, reading, and the verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vally import GraderInput, GraderResult, Matches, UnreadableFile, join_capped

MAX_CANDIDATES = 10_000
LISTED_MATCHES = 100


@dataclass(frozen=True, slots=True)
class Candidates:
    """The files that a content check reads; `problem` is the evidence of a check that fails for their number."""

    matches: Matches
    files: tuple[str, ...]
    problem: str | None


@dataclass(frozen=True, slots=True)
class Wording:
    """Evidence of a hit in a file, and of none in all of the files."""

    found: Callable[[str], str]
    not_found: Callable[[tuple[str, ...]], str]


def matches_metadata(matches: Matches) -> dict[str, Any]:
    """Which root was read and what matched there."""
    return {
        "root": matches.origin,
        "matchCount": len(matches.paths),
        "matches": list(matches.paths[:LISTED_MATCHES]),
    }


def candidates(input: GraderInput[Any]) -> Candidates:
    """Resolve `path` and drop directories."""
    path = input.config.path
    matches = input.files.resolve(path)
    files = matches.files()
    problem = None
    if not files:
        problem = f"No files matching '{path}' found"
    elif len(files) > MAX_CANDIDATES:
        problem = f"Too many files matching '{path}': {len(files)} (limit {MAX_CANDIDATES})"
    return Candidates(matches, files, problem)


def grade_content(
    input: GraderInput[Any], found: Candidates, test: Callable[[str], bool], wording: Wording, name: str
) -> GraderResult:
    """Read the candidates in order until one passes the test; a miss counts only when all could be read."""
    config, unreadable, hit = input.config, [], None
    for path in found.files:
        try:
            text = input.files.read_text(found.matches, path)
        except UnreadableFile as error:
            unreadable.append(error)
            continue
        if test(text):
            hit = path
            break
    metadata = {**matches_metadata(found.matches), "unreadable": [error.path for error in unreadable]}
    if hit is not None:
        return GraderResult.verdict(not config.negate, wording.found(hit), name=name, metadata=metadata)
    if unreadable:
        return GraderResult.verdict(False, _indeterminate(config.path, unreadable), name=name, metadata=metadata)
    return GraderResult.verdict(config.negate, wording.not_found(found.files), name=name, metadata=metadata)


def no_verdict_on_content(found: Candidates, evidence: str, name: str) -> GraderResult:
    """The fail of a check that read no file, negated or not."""
    return GraderResult.verdict(
        False, evidence, name=name, metadata={**matches_metadata(found.matches), "unreadable": []}
    )


def _indeterminate(path: str, unreadable: list[UnreadableFile]) -> str:
    listed = join_capped((f"{error.path} ({error.reason})" for error in unreadable), len(unreadable))
    return f"Indeterminate: could not read {len(unreadable)} file(s) matching '{path}': {listed}"
