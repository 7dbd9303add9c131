"""What the members of a panel answered."""

from __future__ import annotations

from dataclasses import dataclass

from vally import GraderResult, trial_score
from vally_grader_panel.config import PanelConfig
from vally_grader_prompt import Grade, JudgeFailed, asked_metadata


@dataclass(frozen=True, slots=True)
class Answer:
    """The grade of one judge, or why there is none; `label` is the judge's name in the panel."""

    label: str
    model: str
    effort: str | None
    grade: Grade | None = None
    failure: JudgeFailed | None = None

    def score(self, config: PanelConfig) -> float | None:
        """The judge's score, 0..1: with criteria of the panel their weighted mean, else its overall score."""
        if self.grade is None:
            return None
        if config.criteria is None:
            return self.grade.overall
        return trial_score(self.grade.criterion_scores, [criterion.weight for criterion in config.criteria])

    def result(self, config: PanelConfig, name: str) -> GraderResult:
        """The result of this judge alone."""
        score = self.score(config)
        if self.grade is not None and score is not None:
            return self.grade.result(name, score)
        assert self.failure is not None
        return self.failure.result(name, asked_metadata(config, self.model, self.effort))


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """What a member answered in an earlier grading; stands for its `Answer` and its `Grade`."""

    label: str
    recorded: GraderResult
    failure: JudgeFailed | None = None

    @property
    def grade(self) -> RecordedAnswer:
        """Itself: all that an aggregate reads of a grade are the scores of criteria."""
        return self

    @property
    def criterion_scores(self) -> list[float]:
        """Scores of the criteria, 0..1."""
        return [item.score for item in self.recorded.details or ()]

    def score(self, config: PanelConfig) -> float | None:
        """The score, 0..1, that was recorded."""
        return self.recorded.score

    def result(self, config: PanelConfig, name: str) -> GraderResult:
        """The recorded result."""
        return self.recorded
