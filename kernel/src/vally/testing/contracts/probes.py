"""Graders that say what a backend showed them."""

from __future__ import annotations

from typing import Any

from vally.decorator import grader
from vally.model.config import Config
from vally.model.results import GraderResult


class FileConfig(Config):
    """A path in the workspace."""

    path: str


class DiffConfig(Config):
    """Nothing to set; it reads the diff of the run or, with `turn`, of that turn."""

    def evidence(self) -> frozenset[str]:
        """What an entry reads."""
        return frozenset({"diff", "turn-diff"})


@grader("contract-file", config=FileConfig, requires_workspace=True)
def contract_file(input: Any) -> GraderResult:
    """Tells the content of a file."""
    matches = input.files.resolve(input.config.path)
    if not matches.paths:
        return GraderResult.verdict(False, "absent")
    return GraderResult.verdict(True, input.files.read_text(matches, matches.paths[0]).strip())


@grader("contract-diff", config=DiffConfig, multiline=True)
def contract_diff(input: Any) -> GraderResult:
    """Tells the diff."""
    diff = input.trajectory.diff
    return GraderResult.verdict(bool(diff), diff or input.trajectory.diff_error or "no diff")


PROBES = (contract_file, contract_diff)
