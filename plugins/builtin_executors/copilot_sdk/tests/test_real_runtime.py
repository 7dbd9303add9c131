"""What the real runtime does in a trial."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vally import ExecutorError, TurnComplete
from vally.testing import MockLlm

pytestmark = [pytest.mark.heavy, pytest.mark.anyio]

DIALECTS = ["completions", "responses", "anthropic"]
SCRIPT = """Please do it.
!tool create {"path": "%s/hello.txt", "file_text": "hello\\n"}
!tool bash {"command": "cat hello.txt; exit 3", "description": "look"}
!usage 100 5 40
!say finished
"""


def kinds(trajectory: Any) -> list[str]:
    return [event.type for event in trajectory.events]


def data(trajectory: Any, kind: str) -> list[dict[str, Any]]:
    return [event.data for event in trajectory.events if event.type == kind]


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_tools_in_every_dialect(run: Any, provider: Any, llm: MockLlm, dialect: str, streaming: bool) -> None:
    config = {"provider": provider(dialect), "streaming": streaming}
    trajectory = await run(SCRIPT % run.work, config=config)
    assert (run.work / "hello.txt").read_text() == "hello\n"
    assert trajectory.output == "finished"
    assert trajectory.end_reason == "completed"
    calls = [(event.type, event.data["toolName"]) for event in trajectory.events if event.type.startswith("tool_")]
    assert calls == [(kind, name) for name in ("create", "bash") for kind in ("tool_call", "tool_result")]
    written, looked = data(trajectory, "tool_result")
    assert (written["success"], written.get("exitCode")) == (True, None)
    assert (looked["success"], looked["exitCode"]) == (True, 3)
    assert looked["result"].startswith("hello\n")
    usage = data(trajectory, "token_usage")
    assert len(usage) == 3
    assert (usage[-1]["inputTokens"], usage[-1]["outputTokens"], usage[-1]["cacheReadTokens"]) == (100, 5, 40)
    assert kinds(trajectory).count("turn_start") == kinds(trajectory).count("turn_end") == 3
    assert len({request.path for request in llm.requests}) == 1
    asked_to_stream = {bool(request.body.get("stream")) for request in llm.requests}
    assert asked_to_stream == {streaming or dialect == "anthropic"}
    assert trajectory.metadata["model"] == "mock-model"
    assert trajectory.metadata["executorVersion"].startswith("1.")


async def test_the_reasoning_effort_reaches_the_model(run: Any, llm: MockLlm) -> None:
    trajectory = await run("x\n!say y", reasoning_effort="high")
    assert llm.requests[-1].body["reasoning_effort"] == "high"
    assert trajectory.metadata["reasoningEffort"] == "high"


async def test_thoughts_are_told_once(run: Any) -> None:
    trajectory = await run('x\n!reason hmm\n!tool bash {"command": "true", "description": "d"}\n!reason aha\n!say y')
    assert [item["content"] for item in data(trajectory, "reasoning")] == ["hmm", "aha"]


async def test_a_skill_is_offered_and_activated(run: Any, llm: MockLlm) -> None:
    offered = run.skill("greet")
    run.skill("zebra")
    trajectory = await run('x\n!tool skill {"skill": "greet"}\n!say y', skills=(offered,))
    assert trajectory.metadata["skillsLoaded"] == ["greet"]
    assert "otherSkills" not in trajectory.metadata
    (activation,) = data(trajectory, "skill_activation")
    assert (activation["name"], activation["path"], activation["trigger"]) == (
        "greet",
        str(offered.path),
        "agent-invoked",
    )
    assert "Use it to greet" in json.dumps(llm.requests[0].body)
    assert "BODY-OF-greet" in json.dumps(llm.requests[-1].body)
    assert "zebra" not in json.dumps(llm.requests[0].body)


async def test_without_skills_none_is_offered(run: Any, llm: MockLlm) -> None:
    place = run.work / ".github" / "skills" / "hidden" / "SKILL.md"
    place.parent.mkdir(parents=True)
    place.write_text("---\nname: hidden\ndescription: HIDDEN-SKILL\n---\n")
    trajectory = await run("x\n!say y")
    assert trajectory.metadata["skillsLoaded"] == []
    assert "HIDDEN-SKILL" not in json.dumps(llm.requests[0].body)
    discovered = await run("x\n!say y", config={"configDiscovery": True})
    assert discovered.metadata["otherSkills"] == ["hidden"]
    builtin = await run("x\n!say y", config={"builtinSkills": True})
    assert builtin.metadata["otherSkills"]


async def test_a_broken_skill_is_an_error(run: Any, llm: MockLlm) -> None:
    with pytest.raises(ExecutorError, match="skill 'bad' was not loaded") as caught:
        await run("x", skills=(run.skill("good"), run.skill("bad", "name: [bad\n")))
    assert (caught.value.code, caught.value.retryable) == ("skill-not-loaded", False)
    assert not llm.requests


async def test_turns_follow_each_other_in_one_session(run: Any, llm: MockLlm) -> None:
    done: list[TurnComplete] = []

    async def turn_completed(turn: TurnComplete) -> None:
        done.append(turn)
        asked.append(len(llm.requests))

    asked: list[int] = []
    script = 'one\n!tool bash {"command": "echo 1 > one", "description": "d"}\n!say first'
    trajectory = await run(script, "two\n!say second", "three\n!say third", on_turn_complete=turn_completed)
    assert done == [TurnComplete(0, False), TurnComplete(1, False), TurnComplete(2, True)]
    assert asked == [2, 3, 4]
    assert [event.turn for event in trajectory.events if event.type == "assistant_message"] == [0, 1, 2]
    assert all(event.turn is not None for event in trajectory.events)
    assert [item["content"] for item in data(trajectory, "user_message")] == [
        script,
        "two\n!say second",
        "three\n!say third",
    ]
    assert "first" in json.dumps(llm.requests[-1].body)
    assert trajectory.output == "third"


async def test_a_sub_agent(run: Any) -> None:
    agents = run.work / ".github" / "agents"
    agents.mkdir(parents=True)
    (agents / "helper.agent.md").write_text("---\nname: helper\ndescription: helps\n---\nYou help.\n")
    inner = 'inner\n!tool bash {"command": "echo sub > sub.txt", "description": "d"}\n!say inner done'
    task = {"agent_type": "helper", "name": "h", "mode": "sync", "description": "d", "prompt": inner}
    trajectory = await run(f"x\n!tool task {json.dumps(task)}\n!say outer done")
    assert (run.work / "sub.txt").read_text() == "sub\n"
    assert trajectory.output == "outer done"
    calls = [event for event in trajectory.events if event.type == "tool_call"]
    (shell,) = [event for event in calls if event.data["toolName"] == "bash"]
    assert shell.agent_id
    assert shell.agent_name == "helper"
    assert [event.data["toolName"] for event in calls if not event.agent_id] == ["task"]
    assert [event.type for event in trajectory.events if event.type == "user_message"] == ["user_message"]


async def test_an_agent_to_start_with(run: Any, llm: MockLlm) -> None:
    agents = run.work / ".github" / "agents"
    agents.mkdir(parents=True)
    (agents / "pirate.agent.md").write_text("---\nname: pirate\ndescription: d\n---\nSPEAK-LIKE-A-PIRATE\n")
    await run("x\n!say y", config={"agent": "pirate"})
    assert "SPEAK-LIKE-A-PIRATE" in json.dumps(llm.requests[-1].body)
    with pytest.raises(ExecutorError, match="Custom agent 'parrot' not found") as caught:
        await run("x", config={"agent": "parrot"})
    assert caught.value.code == "executor-config"


async def test_instructions_tools_and_the_system_message(run: Any, llm: MockLlm) -> None:
    (run.work / "AGENTS.md").write_text("READ-MY-INSTRUCTIONS\n")
    await run("x\n!say y", config={"systemMessage": {"mode": "append", "content": "ONE-MORE-THING"}})
    first = json.dumps(llm.requests[-1].body)
    assert "READ-MY-INSTRUCTIONS" in first
    assert "ONE-MORE-THING" in first
    assert '"ask_user"' not in first
    await run("x\n!say y", config={"customInstructions": "none", "availableTools": ["bash", "view"]})
    second = llm.requests[-1].body
    assert "READ-MY-INSTRUCTIONS" not in json.dumps(second)
    assert sorted(tool["function"]["name"] for tool in second["tools"]) == ["bash", "view"]
    await run("x\n!say y", config={"excludedTools": ["bash"]})
    third = [tool["function"]["name"] for tool in llm.requests[-1].body["tools"]]
    assert "bash" not in third
    assert "view" in third


async def test_answers_to_questions(run: Any) -> None:
    script = 'x\n!tool ask_user {"question": "Colour?"}\n!tool ask_user {"question": "Size?"}\n!say y'
    trajectory = await run(script, config={"askUser": ["blue", "large"]})
    assert [item["result"] for item in data(trajectory, "tool_result")] == [
        "User responded: blue",
        "User responded: large",
    ]


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [
        ("allow-all", [True, True, True]),
        ("deny-all", [False, False, False]),
        ("workspace", [True, False, True]),
        ({"default": "allow", "rules": [{"kind": "shell", "match": "^cat", "decision": "deny", "feedback": "no cats"}]},
         [True, True, False]),
        ({"default": "deny", "rules": [{"kind": "write", "match": r"inside\.txt$", "decision": "allow"}]},
         [True, False, False]),
    ],
    ids=["allow-all", "deny-all", "workspace", "deny-rule", "allow-rule"],
)  # fmt: skip
async def test_permissions(run: Any, policy: Any, allowed: list[bool]) -> None:
    outside = run.directory / "outside.txt"
    script = (
        f'x\n!tool create {{"path": "{run.work}/inside.txt", "file_text": "1"}}\n'
        f'!tool create {{"path": "{outside}", "file_text": "1"}}\n'
        '!tool bash {"command": "cat inside.txt > copy.txt", "description": "d"}\n!say y'
    )
    trajectory = await run(script, config={"permissions": policy})
    results = data(trajectory, "tool_result")
    assert [item["success"] for item in results] == allowed
    assert [(run.work / "inside.txt").exists(), outside.exists()] == allowed[:2]
    assert all(item["errorCode"] == "denied" for item in results if not item["success"])
    if isinstance(policy, dict) and policy["default"] == "allow":
        assert "no cats" in results[2]["result"]


async def test_a_provider_without_a_key(run: Any, provider: Any) -> None:
    trajectory = await run("x\n!say y", config={"provider": provider(apiKeyEnv=None)})
    assert trajectory.output == "y"


async def test_the_model_on_the_wire(run: Any, provider: Any, llm: MockLlm) -> None:
    trajectory = await run("x\n!say y", config={"provider": provider(model="on-the-wire")}, model="selected")
    assert llm.requests[-1].body["model"] == "on-the-wire"
    assert trajectory.metadata["model"] == "selected"
    with pytest.raises(ExecutorError, match="a model is required with 'provider'"):
        await run("x", config={"provider": provider(model=None)})


async def test_headers_reach_the_endpoint(run: Any, provider: Any, llm: MockLlm) -> None:
    await run("x\n!say y", config={"provider": provider(headers={"X-Team": "seven"})})
    assert llm.requests[-1].headers["x-team"] == "seven"
