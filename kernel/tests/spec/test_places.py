"""Positions that commands ask for: of values in specs, of keys in skills."""

from __future__ import annotations

from pathlib import Path

import pytest

from vally import inspect_skill, read_eval_spec
from vally.testing import plugin_host


@pytest.mark.parametrize(
    ("pointer", "line", "column"),
    [
        ("", 1, 1),
        ("/stimuli/0", 3, 5),
        ("/stimuli/0/tags/a~1b", 5, 19),
        ("/stimuli/0/tags/nothing/below", 5, 11),
        ("/stimuli/7", 3, 3),
        ("/nothing", 1, 1),
    ],
)
def test_a_pointer_has_the_position_of_its_value(pointer: str, line: int, column: int, tmp_path: Path) -> None:
    path = tmp_path / "eval.yaml"
    path.write_text("name: e\nstimuli:\n  - name: s\n    prompt: p\n    tags: {'a/b': x}\n", encoding="utf-8")
    found = read_eval_spec(path, host=plugin_host()).position(pointer)
    assert found is not None
    assert (found.line, found.column) == (line, column)


def test_a_file_that_cannot_be_read_has_no_positions(tmp_path: Path) -> None:
    assert read_eval_spec(tmp_path / "none.yaml", host=plugin_host()).position("/name") is None


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_skill_tells_where_its_keys_and_its_body_are(end: str, tmp_path: Path) -> None:
    text = end.join(["---", "name: a", "description: >", "  text", "---", "", "Body."])
    (tmp_path / "SKILL.md").write_bytes(text.encode())
    skill, diagnostics = inspect_skill(tmp_path)
    assert skill is not None
    assert diagnostics == ()
    assert skill.has_frontmatter
    assert skill.key_positions == {"name": (2, 1), "description": (3, 1)}
    assert skill.positions == {"name": (2, 7), "description": (3, 14)}
    assert (skill.body, skill.body_line) == (f"{end}Body.", 6)


def test_a_skill_without_frontmatter_is_all_body(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("---\nname: a\n", encoding="utf-8")
    skill, diagnostics = inspect_skill(tmp_path, display="x/SKILL.md")
    assert skill is not None
    assert (skill.has_frontmatter, skill.body, skill.body_line, diagnostics) == (False, "---\nname: a\n", 1, ())


def test_problems_of_a_skill_name_the_file_as_displayed(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("---\n[a\n---\n", encoding="utf-8")
    _, (found,) = inspect_skill(tmp_path, display="x/SKILL.md")
    assert (found.file, found.code) == ("x/SKILL.md", "yaml-syntax")


@pytest.mark.parametrize("body", ["[a](" * 20_000, "[" * 80_000, "![](" * 20_000], ids=["links", "brackets", "images"])
def test_bodies_of_nothing_but_brackets_are_read(body: str, tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text(f"---\nname: a\n---\n{body}", encoding="utf-8")
    skill, _ = inspect_skill(tmp_path)
    assert skill is not None
    assert skill.file_references == ()
