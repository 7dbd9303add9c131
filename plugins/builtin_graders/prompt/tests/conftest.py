from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from vally import GraderSpec, JudgeRequest
from vally.testing import ScriptedJudge
from vally_grader_prompt import plugin


@pytest.fixture(scope="session")
def record() -> GraderSpec:
    """The record of `prompt`."""
    (found,) = plugin.vally_graders()
    return found


@pytest.fixture(scope="session")
def graded() -> Callable[..., dict[str, Any]]:
    """Makes the arguments of a valid call of `submit_grade`."""

    def make(overall: float, reasoning: str = "Good", *, scores: Sequence[float] | None = None) -> dict[str, Any]:
        return {
            "rubric_scores": [
                {"criterion": f"criterion {number}", "score": score, "reasoning": f"because {number}"}
                for number, score in enumerate(scores if scores is not None else [overall, overall], 1)
            ],
            "overall_score": overall,
            "overall_reasoning": reasoning,
        }

    return make


class ReadingJudge(ScriptedJudge):
    """Answers with one grade and keeps what lay in the evidence directory, by relative path."""

    def __init__(self, answer: dict[str, Any], *, supports_files: bool = True) -> None:
        super().__init__(self._answer, supports_files=supports_files)
        self._args = answer
        self.directories: list[Path] = []
        self.files: dict[str, bytes] = {}
        self.listed: list[str] = []

    def _answer(self, request: JudgeRequest) -> dict[str, Any]:
        root = request.evidence_dir
        assert root is not None
        self.directories.append(root)
        self.files = {
            path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
        }
        self.listed = [path.relative_to(root).as_posix() for path in request.evidence_files]
        return self._args

    @property
    def message(self) -> str:
        """The user message of the only request, with the token replaced by the word TOKEN."""
        (request,) = self.requests
        token = request.user_message.split("<task-")[1].split(">")[0]
        return request.user_message.replace(token, "TOKEN")

    def excerpt(self, name: str) -> str:
        """The text between the delimiters of one piece of evidence."""
        return self.message.split(f'<evidence-TOKEN name="{name}">\n')[1].split("\n</evidence-TOKEN>")[0]


@pytest.fixture
def reader(graded: Callable[..., dict[str, Any]]) -> ReadingJudge:
    """A judge that reads files."""
    return ReadingJudge(graded(5))


@pytest.fixture
def text_reader(graded: Callable[..., dict[str, Any]]) -> ReadingJudge:
    """A judge that sees the message only."""
    return ReadingJudge(graded(5), supports_files=False)
