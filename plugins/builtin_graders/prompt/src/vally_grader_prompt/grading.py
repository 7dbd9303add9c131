"""Asking a judge for a grade, and the result that its grade becomes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import anyio.to_thread

from vally import GraderInput, GraderResult, JudgeReply, reaches
from vally_grader_prompt.config import JudgedConfig
from vally_grader_prompt.criteria import DEFAULT_CRITERIA, NO_RUBRIC, Criterion, paired, rubric_criteria
from vally_grader_prompt.evidence import Evidence, evidence_directory
from vally_grader_prompt.judging import Question
from vally_grader_prompt.messages import grade_system_message, grade_user_message
from vally_grader_prompt.outcomes import NO_REASONING
from vally_grader_prompt.sources import gather
from vally_grader_prompt.submission import SubmittedGrade, grade_check, grade_tool


def criteria_of(input: GraderInput[Any]) -> tuple[Criterion, ...]:
    """The stimulus's rubric, else the default criteria and one warning per run."""
    criteria = rubric_criteria(input.stimulus.rubric)
    if not criteria:
        input.warn(NO_RUBRIC)
    return criteria or DEFAULT_CRITERIA


async def evidence_of(input: GraderInput[Any], config: JudgedConfig) -> Evidence:
    """The evidence that a config asks for."""
    return await anyio.to_thread.run_sync(gather, input, config.kinds, abandon_on_cancel=True)


@asynccontextmanager
async def grade_question(
    input: GraderInput[Any],
    config: JudgedConfig,
    criteria: Sequence[Criterion],
    evidence: Evidence,
    *,
    with_files: bool,
) -> AsyncIterator[Question]:
    """What to ask; the files of the evidence exist inside this context only."""
    scale = config.scale
    message = grade_user_message(
        input.stimulus,
        criteria,
        evidence,
        scale=scale,
        turn=input.turn,
        instructions=config.instructions,
        with_files=with_files,
    )
    async with evidence_directory(evidence.files) as (directory, paths):
        yield Question(
            system_message=grade_system_message(scale),
            user_message=message,
            tool=grade_tool(scale),
            check=grade_check(criteria, scale),
            evidence_dir=directory,
            evidence_files=paths,
            seed=input.seed,
        )


@dataclass(frozen=True)
class Grade:
    """The grade of one judge: what it was asked as, and its valid reply."""

    config: JudgedConfig
    criteria: Sequence[Criterion]
    model: str
    effort: str | None
    reply: JudgeReply

    @cached_property
    def submitted(self) -> SubmittedGrade:
        """The arguments of the call."""
        return SubmittedGrade.model_validate(dict(self.reply.args))

    @property
    def overall(self) -> float:
        """The overall score, 0..1."""
        return self.config.scale.normalise(self.submitted.overall_score)

    @cached_property
    def criterion_scores(self) -> list[float]:
        """The scores of the criteria in their order, 0..1."""
        return [self.config.scale.normalise(item.score) for item in self._items]

    @cached_property
    def _items(self) -> list[Any]:
        return paired(self.criteria, self.submitted.rubric_scores)

    def result(self, name: str, score: float) -> GraderResult:
        """The result of this judge with this score, and one nested result per criterion."""
        details = [
            self._result(f"{name}/{criterion.name}", value, item.reasoning, criterion.limit)
            for criterion, value, item in zip(self.criteria, self.criterion_scores, self._items, strict=True)
        ]
        found = self._result(name, score, self.submitted.overall_reasoning)
        return found.model_copy(update={"metadata": self._metadata(), "details": details})

    def _result(self, name: str, score: float, reasoning: str, limit: float | None = None) -> GraderResult:
        evidence = reasoning if reasoning.strip() else NO_REASONING
        passed = reaches(score, self.config.limit if limit is None else limit)
        return GraderResult.verdict(passed, evidence, score=score, name=name, kind="llm")

    def _metadata(self) -> dict[str, Any]:
        reply = self.reply
        return {
            **asked_metadata(self.config, reply.model or self.model, self.effort),
            "rawScore": self.submitted.overall_score,
            **({} if reply.usage is None else {"tokenUsage": _tokens(reply.usage)}),
            "latencyMs": reply.latency_ms,
            "remindersUsed": reply.reminders_used,
            **({} if reply.cache is None else {"judgeCache": reply.cache}),
        }


def asked_metadata(config: JudgedConfig, model: str, effort: str | None) -> dict[str, Any]:
    """What is known of a judge before it answers."""
    return {
        "model": model,
        **({} if effort is None else {"reasoningEffort": effort}),
        "scoring": config.scoring,
        "threshold": config.limit,
        "evidence": list(config.kinds),
    }


def _tokens(usage: Any) -> dict[str, int]:
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.input_tokens + usage.output_tokens,
    }
