from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally import SpecError, parse_skill
from vally.spec import find_skills


def test_parse_skill(work: Any) -> None:
    text = (
        "\ufeff---\nname: log-reader\ndescription: reads logs\nversion: 1.0\nmetadata: {on: yes}\n---\n"
        "# Log reader\nSee [format](./references/format.md#top), [same](references/format.md),\n"
        "![logo](<assets/logo.png> 'Logo'), [web](https://example.com/a.md), [gone](gone.md), [here](#top).\n"
    )
    work.write("skill-dir/references/format.md")
    work.write("skill-dir/assets/logo.png")
    path = work.write("skill-dir/SKILL.md", text)
    skill = parse_skill(path)
    assert (skill.name, skill.description, skill.path) == ("log-reader", "reads logs", path)
    assert skill.frontmatter == {
        "name": "log-reader",
        "description": "reads logs",
        "version": 1.0,
        "metadata": {"on": "yes"},
    }
    assert skill.raw_content == text.removeprefix("\ufeff")
    assert skill.file_references == ("references/format.md", "assets/logo.png")
    assert parse_skill(path.parent) == skill


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# No frontmatter\n",
        "---\nname: x\n",
        "---\n---\n",
        "---\n# comment\n---\n",
        "---\nname: 5\n---\n",
        "---\nname: ' '\n---\n",
    ],
)
def test_without_a_name(work: Any, text: str) -> None:
    skill = parse_skill(work.write("fallback/SKILL.md", text))
    assert (skill.name, skill.description) == ("fallback", "")
    assert skill.raw_content == text


@pytest.mark.parametrize(
    ("text", "position", "code"),
    [
        ("---\nname: a\nname: b\n---\n", (3, 1), "duplicate-key"),
        ("---\nname: [a\n---\n", (3, 1), "yaml-syntax"),
        ("---\n[a]\n---\n", (2, 1), "invalid-type"),
        ("---\nname: !x a\n---\n", (2, 7), "yaml-unsafe-tag"),
    ],
)
def test_broken_frontmatter(work: Any, text: str, position: tuple[int, int], code: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_skill(work.write("s/SKILL.md", text))
    (item,) = caught.value.diagnostics
    assert (item.code, (item.line, item.column)) == (code, position)
    assert item.file == str(work.root / "s/SKILL.md")


def test_a_missing_skill(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot read"):
        parse_skill(tmp_path / "none")


def test_find_skills(work: Any) -> None:
    for path in ("b", "a/one", "a/two", "a/one/inner", ".github/skills/g", "node_modules/n", ".git/x", "run/s"):
        work.skill(path)
    work.write("run/results.jsonl")
    (work.root / "link").symlink_to(work.root / "b")
    found = [path.relative_to(work.root).as_posix() for path in find_skills(work.root)]
    assert found == [".github/skills/g", "a/one", "a/two", "b"]
    assert find_skills(work.root / "b") == [work.root / "b"]
