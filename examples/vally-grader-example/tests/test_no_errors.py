"""`no-errors`."""

from __future__ import annotations

import pytest

from vally import PluginHost
from vally.testing import event, grade, trajectory

CALL = event("tool_call", tool_name="bash", tool_call_id="1")
FAILED = event("tool_result", tool_name="bash", tool_call_id="1", success=False, result="exit code 1")
WORKED = event("tool_result", tool_name="bash", tool_call_id="1", success=True)
BROKEN = event("error", message="connection lost")


@pytest.mark.parametrize(
    ("events", "config", "evidence"),
    [
        ([], {}, "no errors"),
        ([CALL, WORKED], {}, "no errors"),
        ([CALL, FAILED], {"allow_tool_failures": True}, "no errors"),
        ([CALL, FAILED], {}, "1 errors, the first: bash failed"),
        ([BROKEN, CALL, FAILED], {}, "2 errors, the first: connection lost"),
        ([CALL, FAILED, BROKEN], {"allow_tool_failures": True}, "1 errors, the first: connection lost"),
    ],
    ids=["nothing", "worked", "failure-allowed", "failure", "two", "error-although-failures-allowed"],
)
def test_verdicts(plugins: PluginHost, events: list[object], config: dict[str, object], evidence: str) -> None:
    result = grade("no-errors", config, trajectory(*events), host=plugins)  # type: ignore[arg-type]
    assert (result.passed, result.evidence) == (evidence == "no errors", evidence)


def test_only_the_turn_that_is_asked_for(plugins: PluginHost) -> None:
    two = trajectory(
        event("user_message", content="a", turn=0),
        event("error", message="early", turn=0),
        event("user_message", content="b", turn=1),
        turns=["a", "b"],
    )
    assert not grade("no-errors", {}, two, host=plugins, turn=0).passed
    assert grade("no-errors", {}, two, host=plugins, turn=1).passed
