"""Import of ATIF documents."""

from __future__ import annotations

from typing import Any

import pytest

from vally import AtifError, Imported, import_atif, is_atif


def agent_step(number: int, message: Any = "", **fields: Any) -> dict[str, Any]:
    return {"step_id": number, "source": "agent", "message": message, **fields}


def call(name: str = "c1", tool: str = "bash", **arguments: Any) -> dict[str, Any]:
    return {"tool_call_id": name, "function_name": tool, "arguments": arguments}


def document(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "schema_version": "ATIF-v1.7",
        "agent": {"name": "coder", "version": "1"},
        "steps": list(steps) or [{"step_id": 1, "source": "user", "message": "hi"}],
        **fields,
    }


USER = {"step_id": 1, "source": "user", "message": "hi"}
FULL = document(
    USER,
    agent_step(
        2,
        tool_calls=[call(command="ls")],
        observation={"results": [{"source_call_id": "c1", "content": "ok"}]},
        metrics={"prompt_tokens": 10, "completion_tokens": 2},
    ),
    agent_step(3, "done"),
)


def types(imported: Imported) -> list[str]:
    return [event.type for event in imported.trajectory.events]


def test_atf_1() -> None:
    imported = import_atif(FULL)
    assert types(imported) == [
        "user_message",
        "turn_start",
        "tool_call",
        "tool_result",
        "token_usage",
        "turn_end",
        "turn_start",
        "assistant_message",
        "turn_end",
    ]
    trajectory = imported.trajectory
    assert [event.data["turnId"] for event in trajectory.events if event.type == "turn_start"] == ["2", "3"]
    assert trajectory.output == "done"
    assert trajectory.metrics is not None
    assert trajectory.metrics.turn_count == 2
    assert trajectory.end_reason == "completed"
    assert trajectory.metadata["executor"] == "atif:coder"
    assert trajectory.imported_from == {"format": "atif", "version": "1.7"}
    assert imported.warnings == ()


BAD: list[tuple[str, Any, str]] = [
    ("ATF-2", document(USER, agent_step(3)), "steps[1].step_id must be 2"),
    (
        "ATF-3",
        document(USER, agent_step(2, tool_calls=[call()], observation={"results": [{"source_call_id": "c9"}]})),
        "steps[1].observation.results[0].source_call_id 'c9' is not a tool call of this step",
    ),
    (
        "ATF-5",
        document(USER, agent_step(2, tool_calls=[{**call(), "arguments": "ls"}])),
        "steps[1].tool_calls[0].arguments must be an object",
    ),
    ("major", document(schema_version="ATIF-v2.0"), "schema_version must be an ATIF-v1.x version"),
    ("no version", document(schema_version=None), "schema_version must be an ATIF-v1.x version"),
    ("no agent", document(agent=None), "agent is required"),
    ("no name", document(agent={"version": "1"}), "agent.name is required"),
    ("no steps", document(steps=[]), "steps must be a non-empty list"),
    ("a step", document(steps=[1]), "steps[0] must be an object"),
    ("step id", document({**USER, "step_id": True}), "steps[0].step_id must be 1"),
    ("source", document({**USER, "source": "tool"}), "steps[0].source must be system, user or agent"),
    ("message", document({**USER, "message": 5}), "steps[0].message must be a string or a list of parts"),
    ("part", document({**USER, "message": [{"type": "audio"}]}), "steps[0].message[0] unknown part type 'audio'"),
    ("text", document({**USER, "message": [{"type": "text"}]}), "steps[0].message[0].text is required"),
    ("model", document({**USER, "model_name": "m"}), "steps[0].model_name is allowed on agent steps only"),
    ("calls", document({**USER, "tool_calls": []}), "steps[0].tool_calls is allowed on agent steps only"),
    (
        "call id",
        document(USER, agent_step(2, tool_calls=[{"function_name": "x", "arguments": {}}])),
        "steps[1].tool_calls[0].tool_call_id is required",
    ),
    (
        "same id",
        document(USER, agent_step(2, tool_calls=[call(), call()])),
        "steps[1].tool_calls[1].tool_call_id repeats 'c1'",
    ),
    (
        "count",
        document(USER, agent_step(2, metrics={"prompt_tokens": -1})),
        "steps[1].metrics.prompt_tokens must be a non-negative integer",
    ),
    (
        "fraction",
        document(USER, agent_step(2, metrics={"cached_tokens": 1.5})),
        "steps[1].metrics.cached_tokens must be a non-negative integer",
    ),
    (
        "cost",
        document(USER, agent_step(2, metrics={"cost_usd": "1"})),
        "steps[1].metrics.cost_usd must be a non-negative number",
    ),
    (
        "no call",
        document(USER, agent_step(2, llm_call_count=0, metrics={"prompt_tokens": 1})),
        "steps[1].metrics.prompt_tokens is not allowed when llm_call_count is 0",
    ),
    ("time", document({**USER, "timestamp": "yesterday"}), "steps[0].timestamp is not an ISO 8601 time"),
    (
        "embedded",
        document(subagent_trajectories=[{"agent": {"name": "x"}, "steps": [USER]}]),
        "subagent_trajectories[0].trajectory_id is required",
    ),
    (
        "embedded step",
        document(subagent_trajectories=[{**document({**USER, "step_id": 4}), "trajectory_id": "t"}]),
        "subagent_trajectories[0].steps[0].step_id must be 1",
    ),
    (
        "twice",
        document(subagent_trajectories=[{**document(), "trajectory_id": "t"}, {**document(), "trajectory_id": "t"}]),
        "subagent_trajectories[1].trajectory_id repeats 't'",
    ),
]


@pytest.mark.parametrize(("value", "problem"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_what_is_wrong_is_named_by_its_path(value: Any, problem: str) -> None:
    with pytest.raises(AtifError) as caught:
        import_atif(value)
    assert str(caught.value) == f"ATIF validation: {problem}"


def test_atf_4_parts_are_joined_and_images_become_references() -> None:
    parts = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image", "source": {"media_type": "image/png", "path": "p" * 200}},
        {"type": "image_url", "url": "https://example.org/x.png"},
    ]
    (event,) = import_atif(document({**USER, "message": parts})).trajectory.events
    assert event.data["content"].split("\n") == [
        "see",
        "[image:image/png]",
        f"[image:{'p' * 128}…]",
        "[image:https://example.org/x.png]",
    ]


@pytest.mark.parametrize(
    ("version", "warned"), [("ATIF-v1.6", False), ("ATIF-v1.7", False), ("ATIF-v1.5", True), ("ATIF-v1.9", True)]
)
def test_other_minor_versions_are_read_with_a_warning(version: str, warned: bool) -> None:
    imported = import_atif(document(schema_version=version))
    assert bool(imported.warnings) is warned
    assert is_atif(document(schema_version=version))


def test_unknown_keys_are_one_warning() -> None:
    imported = import_atif(document({**USER, "mood": 1}, zodiac=2))
    assert imported.warnings == ("unknown keys are ignored: steps[].mood, zodiac",)


@pytest.mark.parametrize(
    ("extra", "success", "explicit"),
    [
        (None, True, None),
        ({"is_error": True}, False, False),
        ({"is_error": False}, True, True),
        ({"status": "failed"}, False, False),
        ({"status": "ok"}, True, True),
        ({"other": 1}, True, None),
    ],
)
def test_success_of_a_result(extra: Any, success: bool, explicit: bool | None) -> None:
    results = [{"source_call_id": "c1", "content": None, "extra": extra}]
    value = document(USER, agent_step(2, tool_calls=[call()], observation={"results": results}))
    for status, expected in (("infer", success), ("require-explicit", explicit)):
        events = import_atif(value, tool_result_status=status).trajectory.events  # type: ignore[arg-type]
        (result,) = (event for event in events if event.type == "tool_result")
        assert result.data.get("success") is expected


def test_results_without_an_id_belong_to_the_only_call() -> None:
    observation = {"results": [{"content": "seen"}]}
    one = import_atif(document(USER, agent_step(2, tool_calls=[call()], observation=observation)))
    none = import_atif(document(USER, agent_step(2, observation=observation)))
    assert [event.data["result"] for event in one.trajectory.events if event.type == "tool_result"] == ["seen"]
    (custom,) = (event for event in none.trajectory.events if event.type == "custom")
    assert custom.data == {"eventType": "observation", "content": "seen"}


def test_system_steps() -> None:
    value = document(
        {"step_id": 1, "source": "system", "message": "be good"},
        {"step_id": 2, "source": "system", "message": "", "extra": {"context_management": {"type": "compaction"}}},
    )
    events = import_atif(value).trajectory.events
    assert [(event.type, event.data["eventType"]) for event in events] == [
        ("custom", "system_message"),
        ("system", "compaction"),
    ]


def test_copied_context_is_left_out_and_final_metrics_stand_in() -> None:
    value = document(
        {**USER, "is_copied_context": True},
        {"step_id": 2, "source": "user", "message": "go"},
        agent_step(3, "ok", timestamp="2026-01-01T00:00:05Z", model_name="m"),
        final_metrics={"total_prompt_tokens": 7, "total_completion_tokens": 3, "total_cost_usd": 0.5},
        session_id="s1",
    )
    trajectory = import_atif(value).trajectory
    assert [event.data.get("content") for event in trajectory.events if event.type == "user_message"] == ["go"]
    assert trajectory.metrics is not None
    usage = trajectory.metrics.token_usage
    assert usage is not None
    assert (usage.total_tokens, usage.call_count) == (10, 1)
    assert usage.cost is not None
    assert (usage.cost.unit, usage.cost.amount) == ("usd", 0.5)
    assert trajectory.metadata["sessionID"] == trajectory.id == "s1"
    assert trajectory.metadata["model"] == "m"


def embedding(reference: Any) -> dict[str, Any]:
    child = document(USER, agent_step(2, "from the child"), agent={"name": "helper", "version": "1"})
    results = [{"source_call_id": "c1", "content": "done", "subagent_trajectory_ref": reference}]
    return document(
        USER,
        agent_step(2, tool_calls=[call(tool="task")], observation={"results": results}),
        agent_step(3, "end"),
        subagent_trajectories=[{**child, "trajectory_id": "t-1"}],
    )


def test_sub_agents_follow_the_result_that_refers_to_them() -> None:
    imported = import_atif(embedding([{"trajectory_id": "t-1"}]))
    kinds = types(imported)
    place = kinds.index("tool_result")
    child = imported.trajectory.events[place + 1 : place + 5]
    assert [event.agent_id for event in child] == ["helper"] * 4
    assert [event.agent_name for event in child] == ["helper"] * 4
    assert imported.trajectory.output == "end"
    by_instance = import_atif(embedding([{"trajectory_id": "t-1"}]), subagent_identity="instance")
    assert by_instance.trajectory.events[place + 1].agent_id == "t-1"


def test_sub_agents_that_nothing_refers_to_come_last() -> None:
    imported = import_atif(embedding([{"trajectory_id": "t-9"}]))
    assert imported.trajectory.events[-1].agent_id == "helper"
    assert imported.warnings == ("the sub-agent trajectory 't-9' is not part of the document",)


def test_turns_follow_the_prompts() -> None:
    value = document(
        USER, agent_step(2, "one"), {"step_id": 3, "source": "user", "message": "and"}, agent_step(4, "two")
    )
    trajectory = import_atif(value, prompts=["hi", "and"]).trajectory
    assert [event.turn for event in trajectory.events] == [0] * 4 + [1] * 4
    assert {event.turn for event in import_atif(value, prompts=["hi", "other", "x"]).trajectory.events} == {None}


def test_arguments_may_be_nested_deeply() -> None:
    nested: Any = "x"
    for _ in range(900):
        nested = {"a": nested}
    imported = import_atif(document(USER, agent_step(2, tool_calls=[call(deep=nested)])))
    assert types(imported).count("tool_call") == 1


def test_counts_beyond_all_floats() -> None:
    huge = 10**400
    imported = import_atif(document(USER, agent_step(2, metrics={"prompt_tokens": huge, "cost_usd": 1})))
    assert imported.trajectory.metrics is not None
    usage = imported.trajectory.metrics.token_usage
    assert usage is not None
    assert usage.input_tokens == 2**53 - 1
    with pytest.raises(AtifError, match="cost_usd must be a non-negative number"):
        import_atif(document(USER, agent_step(2, metrics={"cost_usd": huge})))
