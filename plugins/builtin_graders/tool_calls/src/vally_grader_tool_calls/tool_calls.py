"""`tool-calls`: which tools were called, how and in which order, and which were not."""

from __future__ import annotations

from vally import GraderInput, GraderResult, describe_grader_value, tool_calls
from vally_grader_tool_calls.tool_calls_config import ToolCallsConfig
from vally_grader_tool_calls.tool_checks import Check, make_checks

KEYWORD = "tool-calls"


class ToolCalls:
    """Makes one check per required and disallowed entry, one for the sequence and one for the parallel calls."""

    def grade(self, input: GraderInput[ToolCallsConfig]) -> GraderResult:
        calls = tool_calls(input.trajectory.events, input.full_trajectory.events)
        checks = make_checks(input.config, calls)
        failed = [check for check in checks if not check.passed]
        return GraderResult.verdict(
            not failed,
            _evidence(checks, failed),
            name=KEYWORD,
            metadata={
                "callCount": len(calls),
                "stepCount": len({call.step for call in calls}),
                "checkCount": len(checks),
                "failedChecks": [check.name for check in failed],
            },
            details=[GraderResult.verdict(check.passed, check.evidence, name=check.name) for check in checks],
        )

    def default_name(self, config: ToolCallsConfig) -> str:
        parts = [
            ", ".join(entry.name for entry in config.required),
            f"not {', '.join(entry.name for entry in config.disallowed)}" if config.disallowed else "",
            " > ".join(entry.name for entry in config.sequence),
            " & ".join(entry.name for entry in config.parallel),
        ]
        return f"{KEYWORD} {describe_grader_value('; '.join(part for part in parts if part))}"

    def asserts_absence(self, config: ToolCallsConfig) -> bool:
        return bool(config.disallowed) and not (config.required or config.sequence or config.parallel)


def _evidence(checks: list[Check], failed: list[Check]) -> str:
    if not failed:
        return f"All {len(checks)} tool call checks passed"
    reasons = "; ".join(check.evidence for check in failed)
    return f"{len(failed)} of {len(checks)} tool call checks failed: {reasons}"
