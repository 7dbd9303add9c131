"""The recorded diff of the run or of one turn, and the verdict when there is none."""

from __future__ import annotations

from typing import Any

from vally import GraderInput, GraderResult

EVIDENCE = frozenset({"diff", "turn-diff"})
"""What a config of this plugin makes the run record."""


def no_diff(input: GraderInput[Any], name: str) -> GraderResult:
    """The fail of a check that has no diff to look at, negated or not."""
    where = "this run" if input.turn is None else f"turn {input.turn} of this run"
    return GraderResult.verdict(
        False, f"No workspace diff is available for {where}. {input.diff_problem or 'It was not recorded.'}", name=name
    )


def diff_metadata(diff: str) -> dict[str, int]:
    """Size of the diff in UTF-8 bytes."""
    return {"diffBytes": len(diff.encode("utf-8", "surrogatepass"))}
