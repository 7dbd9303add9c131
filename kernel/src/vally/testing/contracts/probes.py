"""Graders that say what a backend showed them."""

from __future__ import annotations

from typing import Any

from vally.model.config import Config
from vally.model.results import GraderResult
from vally.records import GraderSpec


class FileConfig(Config):
    """A path in the workspace."""

    path: str


class DiffConfig(Config):
    """Nothing to set; it reads the diff of the run or, with `turn`, of that turn."""

    def evidence(self) -> frozenset[str]:
        """What an entry reads."""
        return frozenset({"diff", "turn-diff"})


class FileProbe:
    """Tells the content of a file."""

    def grade(self, input: Any) -> GraderResult:
        """Pass with the content, fail without the file."""
        matches = input.files.resolve(input.config.path)
        if not matches.paths:
            return GraderResult.verdict(False, "absent")
        return GraderResult.verdict(True, input.files.read_text(matches, matches.paths[0]).strip())


class DiffProbe:
    """Tells the diff."""

    def grade(self, input: Any) -> GraderResult:
        """Pass with the diff unless it is empty."""
        diff = input.trajectory.diff
        return GraderResult.verdict(bool(diff), diff or input.trajectory.diff_error or "no diff")


# Factories are import strings, so that a backend can make the graders in another process.
PROBES = (
    GraderSpec(
        name="contract-file",
        summary="tells the content of a file",
        factory=f"{__name__}:FileProbe",
        config=f"{__name__}:FileConfig",
        requires_workspace=True,
    ),
    GraderSpec(
        name="contract-diff",
        summary="tells the diff",
        factory=f"{__name__}:DiffProbe",
        config=f"{__name__}:DiffConfig",
        multiline=True,
    ),
)
