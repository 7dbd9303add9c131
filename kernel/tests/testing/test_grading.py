"""One grader through the machinery of a run, and the scripted judge."""

from __future__ import annotations

import anyio
import pytest

from vally import (
    Config,
    GraderError,
    GraderInput,
    GraderResult,
    GraderSpec,
    JudgeError,
    JudgeRequest,
    ToolSchema,
    grader,
)
from vally.testing import ScriptedJudge, event, grade, plugin_host, trajectory


class CountConfig(Config):
    at_least: int = 1


@grader("count-messages", config=CountConfig)
def count_messages(input: GraderInput[CountConfig]) -> GraderResult:
    """Counts assistant messages."""
    count = sum(item.type == "assistant_message" for item in input.trajectory.events)
    return GraderResult.verdict(count >= input.config.at_least, f"{count} messages")


@grader("asks", requires_judge=True, kind="llm")
async def asks(input: GraderInput[CountConfig]) -> GraderResult:
    """Asks the judge."""
    assert input.judge is not None
    reply = await input.judge.judge(request(check=lambda args: None if args.get("score") else "score is required"))
    return GraderResult.verdict(reply.args["score"] == 5, f"score {reply.args['score']}")


@grader("breaks")
def breaks(input: GraderInput[CountConfig]) -> GraderResult:
    """Raises."""
    raise ZeroDivisionError("nothing to divide")


@grader("refuses")
def refuses(input: GraderInput[CountConfig]) -> GraderResult:
    """Reaches no verdict."""
    raise GraderError("no file", kind="workspace")


def request(**fields: object) -> JudgeRequest:
    tool = ToolSchema(name="submit", description="submit it", parameters={"type": "object"})
    facts = {"model": "m", "system_message": "s", "user_message": "u", "tool": tool, **fields}
    return JudgeRequest(**facts)  # type: ignore[arg-type]


TWO_TURNS = trajectory(
    event("user_message", content="a", turn=0),
    event("assistant_message", content="1", turn=0),
    event("user_message", content="b", turn=1),
    event("assistant_message", content="2", turn=1),
    turns=["a", "b"],
)


def test_verdict_and_names() -> None:
    result = grade(count_messages, {"at_least": 2}, TWO_TURNS, name="enough")
    assert (result.passed, result.evidence, result.name, result.configured_name) == (
        True,
        "2 messages",
        "enough",
        "enough",
    )
    assert result.grader_type == "count-messages"


def test_the_view_is_narrowed() -> None:
    assert grade(count_messages, {}, TWO_TURNS, turn=1).evidence == "1 messages"


def test_an_invalid_config_is_an_error_result() -> None:
    result = grade(count_messages, {"at_least": "2"}, TWO_TURNS)
    assert (result.status, result.evidence) == (
        "error",
        "Invalid config for count-messages: 'at_least' must be an integer",
    )


def test_an_exception_is_an_error_result() -> None:
    result = grade(breaks, {}, TWO_TURNS)
    assert (result.status, result.evidence) == ("error", "Grader execution error: nothing to divide")


def test_no_verdict_is_an_error_result() -> None:
    result = grade(refuses, {}, TWO_TURNS)
    assert (result.status, result.evidence) == ("error", "no file")
    assert result.metadata == {"error": {"kind": "workspace", "message": "no file"}}


def test_a_keyword_of_a_given_host() -> None:
    assert grade("count-messages", {}, TWO_TURNS, host=plugin_host(count_messages)).passed


def test_a_scripted_judge_is_reminded() -> None:
    judge = ScriptedJudge(["free text", {"score": 0}, {"score": 5}])
    result = grade(asks, {}, TWO_TURNS, judge=judge)
    assert (result.passed, result.evidence) == (True, "score 5")
    assert len(judge.requests) == 1


def test_one_reply_for_every_call() -> None:
    judge = ScriptedJudge({"score": 3})
    assert [grade(asks, {}, TWO_TURNS, judge=judge).evidence for _ in range(2)] == ["score 3", "score 3"]


@pytest.mark.parametrize(
    ("replies", "kind"),
    [
        (["a", "b", "c", {"score": 1}], "malformed"),
        ([JudgeError("slow", kind="timeout")], "timeout"),
        ([], "unavailable"),
    ],
    ids=["malformed", "timeout", "nothing-left"],
)
def test_a_scripted_judge_fails(replies: list[object], kind: str) -> None:
    judge = ScriptedJudge(replies)
    with pytest.raises(JudgeError) as caught:
        anyio.run(judge.judge, request())
    assert caught.value.kind == kind


def test_a_function_answers() -> None:
    judge = ScriptedJudge(lambda asked: {"model": asked.model})
    reply = anyio.run(judge.judge, request(model="big"))
    assert (reply.args, reply.usage is not None and reply.usage.input_tokens) == ({"model": "big"}, 10)


def test_a_scripted_judge_is_a_plugin() -> None:
    judge = ScriptedJudge({"score": 1})
    plugins = plugin_host(judge.record(provider_types=("fake",)))
    found = plugins.require("judge", "copilot")
    assert isinstance(found, type(judge.record()))
    assert plugins.create(found) is judge


def test_a_record_that_was_not_decorated_cannot_be_called() -> None:
    plain = GraderSpec(name="plain", summary="plain", factory=dict)
    with pytest.raises(TypeError, match="was not made by the decorator"):
        plain()
