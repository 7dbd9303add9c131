"""`panel`: several judges score the run, and an aggregate decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import anyio

from vally import GraderInput, GraderResult, JudgeClient
from vally_grader_panel.answers import Answer
from vally_grader_panel.config import JudgeModel, PanelConfig
from vally_grader_panel.verdict import KEYWORD, panel_result
from vally_grader_prompt.criteria import Criterion
from vally_grader_prompt.grading import Grade, criteria_of, evidence_of, grade_question
from vally_grader_prompt.judging import JudgeFailed, Question, ask, present
from vally_grader_prompt.sources import no_evidence


class Panel:
    """Asks all judges at once, on the same evidence."""

    async def grade(self, input: GraderInput[PanelConfig]) -> GraderResult:
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
            answers = await _ask_all(judge, config, criteria, question)
        return panel_result(config, answers)


def _criteria(input: GraderInput[PanelConfig]) -> tuple[Criterion, ...]:
    named = input.config.criteria
    return tuple(item.criterion for item in named) if named else criteria_of(input)


async def _ask_all(
    judge: JudgeClient, config: PanelConfig, criteria: Sequence[Criterion], question: Question
) -> list[Answer]:
    members = config.judges
    outcomes: list[Answer | None] = [None] * len(members)

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
