"""`prompt`: one judge scores the run, or compares two."""

from __future__ import annotations

from vally import CompareInput, CompareResult, GraderInput, GraderResult, describe_grader_value
from vally_grader_prompt.comparing import compare_both_ways
from vally_grader_prompt.config import PromptConfig
from vally_grader_prompt.grading import Grade, asked_metadata, criteria_of, evidence_of, grade_question
from vally_grader_prompt.judging import JudgeFailed, ask, present
from vally_grader_prompt.sources import no_evidence

KEYWORD = "prompt"


class Prompt:
    """Asks one judge."""

    async def grade(self, input: GraderInput[PromptConfig]) -> GraderResult:
        config, criteria = input.config, criteria_of(input)
        evidence = await evidence_of(input, config)
        try:
            if not evidence.items:
                raise JudgeFailed(no_evidence(config.kinds))
            judge = present(input.judge)
        except JudgeFailed as failure:
            return failure.result(KEYWORD, {})
        model, effort = judge.model_for(config.model), judge.effort_for(config.reasoning_effort)
        with_files = judge.supports_files
        try:
            async with grade_question(input, config, criteria, evidence, with_files=with_files) as question:
                reply = await ask(judge, question, model=model, effort=effort)
        except JudgeFailed as failure:
            return failure.result(KEYWORD, asked_metadata(config, model, effort))
        grade = Grade(config, criteria, model, effort, reply)
        return grade.result(KEYWORD, grade.overall)

    async def compare(self, input: CompareInput[PromptConfig]) -> CompareResult:
        return await compare_both_ways(input)

    def default_name(self, config: PromptConfig) -> str:
        return f"{KEYWORD} {describe_grader_value(config.instructions or '')}"
