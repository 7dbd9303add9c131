"""Positions that commands ask for: of values in specs, of keys in skills."""

from __future__ import annotations

import os
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


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ("environment: {skills: ['${S}', none]}", "skill-not-found", "/stimuli/0/environment/skills/1"),
        ("environment: {skills: none}", "skill-not-found", "/stimuli/0/environment/skills"),
        ("environment: {skills: [a/s, b/s]}", "skill-name-collision", "/stimuli/0/environment/skills/1"),
        ("environment: {skills: [a/s, b/s, 'b/*']}", "skill-name-collision", "/stimuli/0/environment/skills/1"),
        (
            "environment: {git: {type: worktree, source: none}}",
            "git-source-not-found",
            "/stimuli/0/environment/git/source",
        ),
        ("attachments: ['${A}', {path: none}]", "attachment-not-found", "/stimuli/0/attachments/1/path"),
        ("attachments: ['', none]", "attachment-not-found", "/stimuli/0/attachments/1"),
        ("golden_patch: {inline: none}", "invalid-golden-input", "/stimuli/0/golden_patch/inline"),
        ("golden_trajectory: {path: eval.yaml}", "invalid-golden-input", "/stimuli/0/golden_trajectory/path"),
    ],
)
def test_a_finding_points_to_what_it_speaks_of(body: str, code: str, pointer: str, tmp_path: Path) -> None:
    for skill in ("a/s", "b/s"):
        (tmp_path / skill).mkdir(parents=True)
        (tmp_path / skill / "SKILL.md").write_text("---\nname: s\ndescription: d\n---\n", encoding="utf-8")
    path = tmp_path / "eval.yaml"
    path.write_text(f"stimuli:\n  - name: s\n    prompt: p\n    {body}\n", encoding="utf-8")
    loaded = read_eval_spec(path, host=plugin_host(), lint=True)
    (item,) = [item for item in loaded.diagnostics if item.code == code]
    assert item.pointer == pointer
    at = loaded.position(pointer)
    assert at is not None
    assert (item.line, item.column) == (at.line, at.column)


def test_an_older_key_is_pointed_to_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "eval.yaml"
    path.write_text("config: {runs: x, executor: {name: ''}}\nstimuli: []\n", encoding="utf-8")
    found = read_eval_spec(path, host=plugin_host()).diagnostics
    assert [(item.code, item.pointer) for item in found if item.line == 1] == [
        ("deprecated-key", "/config"),
        ("invalid-type", "/config/runs"),
        ("invalid-executor", "/config/executor/name"),
    ]
    assert next(item.message for item in found if item.code == "invalid-type").startswith("defaults.runs ")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_no_spec_and_no_skill(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "eval.yaml")
    os.mkfifo(tmp_path / "SKILL.md")
    (item,) = read_eval_spec(tmp_path / "eval.yaml", host=plugin_host()).diagnostics
    assert (item.code, item.message.partition(": ")[2]) == ("file-not-found", "it is not a regular file")
    skill, (item,) = inspect_skill(tmp_path / "SKILL.md")
    assert skill is None
    assert item.code == "file-not-found"
