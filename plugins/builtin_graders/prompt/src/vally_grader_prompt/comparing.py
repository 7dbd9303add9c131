"""Comparing two runs of one stimulus: one judge is asked twice, with the runs in both orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio.to_thread

from vally import CompareInput, CompareResult, JudgeClient, JudgeReply, Stimulus, Trajectory
from vally_grader_prompt.comparison_tool import SubmittedComparison, comparison_check, comparison_tool
from vally_grader_prompt.config import PromptConfig
from vally_grader_prompt.criteria import DEFAULT_CRITERIA, Criterion, paired, rubric_criteria
from vally_grader_prompt.evidence import Evidence, evidence_directory
from vally_grader_prompt.judging import JudgeFailed, Question, ask, present
from vally_grader_prompt.messages import EVIDENCE_RULES, criteria_section, evidence_sections, task_section
from vally_grader_prompt.outcomes import Opinion, Outcome, Side, merged
from vally_grader_prompt.sources import no_evidence, trajectory_items
from vally_grader_prompt.windows import printable

SYSTEM_MESSAGE = f"""\
You compare the work of two other agents, A and B, on the same task. You had no part in that work, and you change
nothing. Which of them is A and which is B means nothing.

{EVIDENCE_RULES}

Criteria. Compare only by the numbered criteria of the message. Judge each criterion by itself; then give one overall
verdict. Length, style and effort count only where a criterion asks for them.

Verdicts. A-much-better or B-much-better: the difference decides whether the work is of use. A-slightly-better or
B-slightly-better: there is a difference, but it would not matter much. equal: neither is better, or the evidence does
not show which one.

Answer. Call the tool submit_comparison exactly once, with one item in criteria for each criterion, in their order and
with their text. Text outside that call is not read."""


async def compare_both_ways(input: CompareInput[PromptConfig]) -> CompareResult:
    """Ask with the baseline as A, then with the treatment as A; a failed call makes the result `errored`."""
    criteria = _criteria(input)
    try:
        judge = present(input.judge)
        first = await _opinions(judge, input, criteria, treatment="B")
        second = await _opinions(judge, input, criteria, treatment="A")
    except JudgeFailed as failure:
        return CompareResult(winner="tie", magnitude="equal", score=0.0, evidence=failure.message, errored=True)
    overall, *outcomes = (merged(one, other) for one, other in zip(first, second, strict=True))
    return CompareResult(
        winner=overall.winner,
        magnitude=overall.magnitude,
        score=overall.score,
        evidence=overall.evidence,
        criteria=tuple(map(_criterion_outcome, criteria, outcomes)),
    )


def _criteria(input: CompareInput[PromptConfig]) -> tuple[Criterion, ...]:
    # The rest of the config belongs to grading and plays no part.
    criteria = rubric_criteria(input.stimulus.rubric) or DEFAULT_CRITERIA
    instructions = input.config.instructions
    return (*criteria, Criterion.of(instructions)) if instructions else criteria


def _criterion_outcome(criterion: Criterion, outcome: Outcome) -> Mapping[str, object]:
    return {
        "criterion": criterion.text,
        "winner": outcome.winner,
        "magnitude": outcome.magnitude,
        "score": outcome.score,
        "evidence": outcome.evidence,
    }


async def _opinions(
    judge: JudgeClient, input: CompareInput[PromptConfig], criteria: Sequence[Criterion], *, treatment: Side
) -> list[Opinion]:
    """The overall opinion, then one per criterion."""
    first, second = input.baseline, input.treatment
    if treatment == "A":
        first, second = second, first
    evidence = await anyio.to_thread.run_sync(_evidence, first, second, abandon_on_cancel=True)
    if not evidence.items:
        raise JudgeFailed(no_evidence(["trajectory"]))
    reply = await _answer(judge, input, criteria, evidence)
    submitted = SubmittedComparison.model_validate(dict(reply.args))
    return [
        Opinion.of(submitted.overall_verdict, submitted.overall_reasoning, treatment=treatment),
        *(
            Opinion.of(item.verdict, item.reasoning, treatment=treatment)
            for item in paired(criteria, submitted.criteria)
        ),
    ]


async def _answer(
    judge: JudgeClient, input: CompareInput[PromptConfig], criteria: Sequence[Criterion], evidence: Evidence
) -> JudgeReply:
    async with evidence_directory(evidence.files) as (directory, paths):
        question = Question(
            system_message=SYSTEM_MESSAGE,
            user_message=_user_message(input.stimulus, criteria, evidence, with_files=judge.supports_files),
            tool=comparison_tool(),
            check=comparison_check(criteria),
            evidence_dir=directory,
            evidence_files=paths,
            seed=input.seed,
        )
        return await ask(judge, question, model=judge.model_for(None), effort=judge.effort_for(None))


def _evidence(first: Trajectory, second: Trajectory) -> Evidence:
    sides = {"A": tuple(trajectory_items(first, "A")), "B": tuple(trajectory_items(second, "B"))}
    return Evidence(
        items=tuple(item for items in sides.values() for item in items),
        missing=tuple(f"trajectory of agent {side}" for side, items in sides.items() if not items),
    )


def _user_message(stimulus: Stimulus, criteria: Sequence[Criterion], evidence: Evidence, *, with_files: bool) -> str:
    sections = [
        task_section(stimulus, evidence.token),
        criteria_section(criteria),
        *evidence_sections(evidence, with_files=with_files),
    ]
    return printable("\n\n".join(sections)) + "\n"
