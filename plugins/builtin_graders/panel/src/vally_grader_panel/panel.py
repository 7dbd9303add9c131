"""`panel`: several judges score the run, and an aggregate decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import anyio

from vally import GraderInput, GraderResult, JudgeClient
from vally_grader_panel.answers import Answer, RecordedAnswer
from vally_grader_panel.config import JudgeModel, PanelConfig
from vally_grader_panel.verdict import KEYWORD, panel_result
from vally_grader_prompt import (
    Criterion,
    Grade,
    JudgeFailed,
    Question,
    ask,
    criteria_of,
    evidence_of,
    grade_question,
    no_evidence,
    present,
)


class Panel:
    """Asks all judges at once, on the same evidence."""

    async def grade(self, input: GraderInput[PanelConfig]) -> GraderResult:
        return await self._graded(input, {})

    async def repeat(self, input: GraderInput[PanelConfig], recorded: GraderResult) -> GraderResult:
        """Ask those members again that have no verdict in a recorded result."""
        known = recorded_answers(input.config, recorded)
        if known is None:
            return recorded
        return await self._graded(input, known)

    async def _graded(self, input: GraderInput[PanelConfig], known: Mapping[str, RecordedAnswer]) -> GraderResult:
        config = input.config
        criteria = _criteria(input)
        evidence = await evidence_of(input, config)
        try:
            if not evidence.items:
                raise JudgeFailed(no_evidence(config.kinds))
            judge = present(input.judge)
        except JudgeFailed as failure:
            return failure.result(KEYWORD, {})
        async with grade_question(input, config, criteria, evidence, with_files=judge.supports_files) as question:
            answers = await _ask_all(judge, config, criteria, question, known)
        return panel_result(config, answers)


def recorded_answers(config: PanelConfig, recorded: GraderResult) -> dict[str, RecordedAnswer] | None:
    """Members of a recorded result that answered, by name; None when their scores do not fit the criteria any more."""
    found = {}
    for result in recorded.details or ():
        if result.status != "error":
            label = result.name.removeprefix(f"{KEYWORD}/")
            found[label] = RecordedAnswer(label, result)
    expected = len(config.criteria or ())
    fits = all(len(answer.criterion_scores) == expected for answer in found.values()) if expected else True
    return found if fits else None


def _criteria(input: GraderInput[PanelConfig]) -> tuple[Criterion, ...]:
    named = input.config.criteria
    return tuple(item.criterion for item in named) if named else criteria_of(input)


async def _ask_all(
    judge: JudgeClient,
    config: PanelConfig,
    criteria: Sequence[Criterion],
    question: Question,
    known: Mapping[str, RecordedAnswer],
) -> list[Answer | RecordedAnswer]:
    members = config.judges
    outcomes: list[Answer | RecordedAnswer | None] = [None] * len(members)

    async def ask_one(index: int, label: str, member: JudgeModel) -> None:
        model = judge.model_for(member.model)
        effort = judge.effort_for(member.reasoning_effort or config.reasoning_effort)
        try:
            reply = await ask(judge, question, model=model, effort=effort)
        except JudgeFailed as failure:
            outcomes[index] = Answer(label, model, effort, failure=failure)
        else:
            outcomes[index] = Answer(label, model, effort, grade=Grade(config, criteria, model, effort, reply))

    async with anyio.create_task_group() as group:
        for index, (label, member) in enumerate(zip(_labels(members), members, strict=True)):
            if label in known:
                outcomes[index] = known[label]
            else:
                group.start_soon(ask_one, index, label, member)
    return [answer for answer in outcomes if answer is not None]


def _labels(members: Sequence[JudgeModel]) -> list[str]:
    """The names of the models; those that occur more than once are numbered."""
    count, seen = Counter(member.model for member in members), Counter[str]()
    labels = []
    for member in members:
        seen[member.model] += 1
        labels.append(f"{member.model} #{seen[member.model]}" if count[member.model] > 1 else member.model)
    return labels
