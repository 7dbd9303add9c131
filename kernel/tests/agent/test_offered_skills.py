"""Skills that no agent could load."""

from __future__ import annotations

from pathlib import Path

import pytest

from vally import ExecutorError, Skill, check_offered_skills


def skill(directory: Path, text: str) -> Skill:
    path = directory / "greeting" / "SKILL.md"
    path.parent.mkdir()
    path.write_text(text)
    return Skill(name="greeting", description="", path=path, raw_content=text, frontmatter={})


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: greeting\ndescription: Says hello.\n---\nSay hello.\n",
        "Say hello.\n",
        "",
        "Say hello.\n\n---\n\nAnd goodbye.\n",
    ],
)
def test_a_skill_with_readable_frontmatter_or_none(tmp_path: Path, text: str) -> None:
    check_offered_skills([skill(tmp_path, text)])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("---\nname: [greeting\n---\nSay hello.\n", "SKILL.md: line 3: "),
        ("---\n- greeting\n---\nSay hello.\n", "SKILL.md: line 2: "),
        ("---\nname: greeting\nSay hello.\n", "the frontmatter is not closed by a line '---'"),
        ("---\nname: a\nname: b\n---\n", "SKILL.md: line 3: "),
    ],
)
def test_broken_frontmatter_is_named(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ExecutorError, match="skill 'greeting' cannot be loaded: ") as caught:
        check_offered_skills([skill(tmp_path, text)])
    assert reason in caught.value.message
    assert (caught.value.code, caught.value.retryable) == ("skill-not-loaded", False)


def test_a_skill_that_is_gone(tmp_path: Path) -> None:
    offered = skill(tmp_path, "Say hello.\n")
    offered.path.unlink()
    with pytest.raises(ExecutorError) as caught:
        check_offered_skills([offered])
    assert caught.value.code == "skill-not-loaded"
