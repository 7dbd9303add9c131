"""Tables that are nearly always asked together."""

from __future__ import annotations

from vally_command_results.store.schema import evals, grader_results, outcome_tags, outcomes, tool_calls

outcomes_with_evals = outcomes.join(evals, evals.c.id == outcomes.c.eval_id)
calls_with_outcomes = tool_calls.join(outcomes, outcomes.c.id == tool_calls.c.outcome_id).join(
    evals, evals.c.id == outcomes.c.eval_id
)
tags_with_outcomes = outcome_tags.join(outcomes, outcomes.c.id == outcome_tags.c.outcome_id).join(
    evals, evals.c.id == outcomes.c.eval_id
)
graders_with_outcomes = grader_results.join(outcomes, outcomes.c.id == grader_results.c.outcome_id).join(
    evals, evals.c.id == outcomes.c.eval_id
)
