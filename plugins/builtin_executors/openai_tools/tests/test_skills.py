"""Skills: how they are offered, taken up, and refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vally import ExecutorError, Skill
from vally.testing import MockLlm

pytestmark = pytest.mark.anyio


def activations(trajectory: Any) -> list[tuple[str, str]]:
    return [
        (event.data["name"], event.data["trigger"]) for event in trajectory.events if event.type == "skill_activation"
    ]


@pytest.mark.parametrize(
    "script",
    [
        '!tool skill {"skill": "greeting"}',
        '!tool view {"path": "greeting/SKILL.md"}',
        '!tool bash {"command": "cat greeting/SKILL.md"}',
    ],
)
async def test_a_skill_is_taken_up(execute: Any, offer: Callable[..., Skill], script: str) -> None:
    trajectory = await execute(f"{script}\n!say Hello.", skills=(offer(), offer("other")))
    assert activations(trajectory) == [("greeting", "file-read")]
    assert trajectory.metadata["skillsLoaded"] == ["greeting", "other"]


async def test_an_unknown_skill_is_none(execute: Any, offer: Callable[..., Skill]) -> None:
    trajectory = await execute('!tool skill {"skill": "x"}\n!say Hello.', skills=(offer(),))
    assert activations(trajectory) == []


async def test_skills_are_offered_by_name_and_description(
    execute: Any, offer: Callable[..., Skill], model: MockLlm
) -> None:
    prompt = {"mode": "replace", "content": "Only this."}
    await execute("hi", skills=(offer(),), config={"systemPrompt": prompt})
    (tool,) = [tool for tool in model.requests[-1].body["tools"] if tool["function"]["name"] == "skill"]
    assert tool["function"]["description"].endswith("\nSkills:\n- greeting: Says hello.")
    await execute("hi")
    assert "skill" not in [tool["function"]["name"] for tool in model.requests[-1].body["tools"]]


async def test_a_skill_with_broken_frontmatter(execute: Any, offer: Callable[..., Skill], model: MockLlm) -> None:
    skill = offer()
    Path(skill.path).write_text("---\nname: [\n---\nSay hello.\n")
    before = len(model.requests)
    with pytest.raises(ExecutorError, match="skill 'greeting' cannot be loaded") as caught:
        await execute("hi", skills=(skill,))
    assert (caught.value.code, len(model.requests)) == ("skill-not-loaded", before)
