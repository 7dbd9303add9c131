"""Workspaces that the user names: kept ones, and those that are used in place."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from vally import WorkspaceChoice
from vally.testing import ScriptedExecutor, tree_digest
from vally_backend_local.kept_workspaces import RECORD


def git(cwd: Path, *args: str) -> None:
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args]
    subprocess.run(command, cwd=cwd, env=env, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def kept(root: Path, name: str = "stimulus") -> dict[str, object]:
    return {"workspace": WorkspaceChoice(path=root / name, root=root, keep=True)}


def in_place(path: Path) -> dict[str, object]:
    return {"workspace": WorkspaceChoice(path=path, in_place=True, keep=True)}


def test_a_kept_workspace_stays(bench, root: Path) -> None:
    fixture = bench.project.file("a.txt", "a")
    stimulus = bench.stimulus(bench.diff_has("+new"), environment=bench.staged((fixture, "a.txt")))
    outcome = bench.run(stimulus, ScriptedExecutor([{"new": "new\n"}]), item=kept(root))
    assert outcome.grade.passed
    assert outcome.work_dir == root / "stimulus"
    assert bench.files_below(root / "stimulus") == {"a.txt": "a", "new": "new\n"}
    assert json.loads((root / RECORD).read_text()) == {"version": 1, "workspaces": ["stimulus"]}


def test_a_workspace_of_an_earlier_run_is_cleared(bench, root: Path) -> None:
    bench.run(bench.stimulus(), ScriptedExecutor([{"old": "old"}]), item=kept(root))
    bench.run(bench.stimulus(), ScriptedExecutor([{"new": "new"}]), item=kept(root))
    assert bench.files_below(root / "stimulus") == {"new": "new"}


@pytest.mark.parametrize(("first", "second"), [("a", "a/trial-0"), ("a/trial-0", "a"), ("a/m/trial-0", "a")])
def test_workspaces_do_not_nest_when_their_number_changes(bench, root: Path, first: str, second: str) -> None:
    bench.run(bench.stimulus(), ScriptedExecutor([{"old": "old"}]), item=kept(root, first))
    bench.run(bench.stimulus(), ScriptedExecutor([{"other": "other"}]), item=kept(root, "b"))
    bench.run(bench.stimulus(), ScriptedExecutor([{"new": "new"}]), item=kept(root, second))
    assert bench.files_below(root) == {
        RECORD: (root / RECORD).read_text(),
        "b/other": "other",
        f"{second}/new": "new",
    }
    assert json.loads((root / RECORD).read_text())["workspaces"] == sorted(["b", second])


def test_files_of_the_user_beside_earlier_workspaces_are_not_cleared(bench, root: Path) -> None:
    bench.run(bench.stimulus(), ScriptedExecutor([{"old": "old"}]), item=kept(root, "a/trial-0"))
    (root / "a" / "precious").write_text("precious")
    outcome = bench.run(bench.stimulus(), item=kept(root, "a"))
    assert (outcome.status, outcome.error.code) == ("error", "workspace-not-empty")
    assert bench.files_below(root / "a") == {"trial-0/old": "old", "precious": "precious"}


def test_a_directory_of_the_user_is_not_cleared(bench, root: Path) -> None:
    (root / "stimulus").mkdir(parents=True)
    (root / "stimulus" / "precious").write_text("precious")
    outcome = bench.run(bench.stimulus(), item=kept(root))
    assert (outcome.status, outcome.error.code) == ("error", "workspace-not-empty")
    assert "was not made by an earlier run" in outcome.error.message
    assert (root / "stimulus" / "precious").read_text() == "precious"
    assert not (root / RECORD).exists()


def test_an_empty_directory_of_the_user_is_taken(bench, root: Path) -> None:
    (root / "stimulus").mkdir(parents=True)
    assert bench.run(bench.stimulus(), item=kept(root)).status == "success"


@pytest.mark.parametrize("text", ["", "[]", '{"workspaces": 3}', "not json"])
def test_a_broken_record_lists_nothing(bench, root: Path, text: str) -> None:
    (root / "stimulus").mkdir(parents=True)
    (root / "stimulus" / "precious").write_text("precious")
    (root / RECORD).write_text(text)
    assert bench.run(bench.stimulus(), item=kept(root)).status == "error"


def test_several_levels_are_recorded_below_one_root(bench, root: Path) -> None:
    for name in ("eval/a/trial-0", "eval/a/trial-1"):
        bench.run(bench.stimulus(), item=kept(root, name))
    assert json.loads((root / RECORD).read_text())["workspaces"] == ["eval/a/trial-0", "eval/a/trial-1"]


def test_workspaces_are_kept_when_the_run_says_so(bench) -> None:
    async def main(backend):
        return await bench.attempt(backend, bench.stimulus(), ScriptedExecutor([{"a": "a"}]))

    outcome = bench.with_backend(main, keep_workspaces=True)
    assert bench.files_below(outcome.work_dir) == {"a": "a"}
    (outcome.work_dir / "a").unlink()
    outcome.work_dir.rmdir()
    outcome.work_dir.parent.rmdir()


def test_in_place_nothing_is_cleared(bench, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "precious").write_text("precious")
    fixture = bench.project.file("a.txt", "a")
    stimulus = bench.stimulus(environment=bench.staged((fixture, "a.txt")))
    outcome = bench.run(stimulus, ScriptedExecutor([{"new": "new"}]), item=in_place(mine))
    assert outcome.work_dir == mine
    assert bench.files_below(mine) == {"a.txt": "a", "new": "new", "precious": "precious"}
    assert not (bench.cache / "workspaces").exists()


def test_in_place_needs_an_existing_directory(bench, tmp_path: Path) -> None:
    outcome = bench.run(bench.stimulus(), item=in_place(tmp_path / "nowhere"))
    assert outcome.error.code == "workspace-not-found"


def test_in_place_diffs_work_in_a_clean_checkout(bench, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "sub").mkdir(parents=True)
    (mine / "sub" / "a.txt").write_text("a\n")
    git(mine, "init", "--quiet")
    git(mine, "add", "--all")
    git(mine, "commit", "--quiet", "--message", "one")
    before = tree_digest(mine / ".git")
    stimulus = bench.stimulus(bench.diff_has("+b"))
    outcome = bench.run(stimulus, ScriptedExecutor([{"a.txt": "b\n"}]), item=in_place(mine / "sub"))
    assert outcome.grade.passed
    outcome = bench.run(stimulus, ScriptedExecutor([{"a.txt": "c\n"}]), item=in_place(mine / "sub"))
    assert outcome.status == "success"
    assert outcome.trajectory.diff_error == "the in-place workspace is not a clean git checkout"
    assert not outcome.grade.passed
    assert tree_digest(mine / ".git") == before


def test_in_place_diffs_need_a_checkout(bench, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    outcome = bench.run(bench.stimulus(bench.diff_has()), item=in_place(mine))
    assert outcome.trajectory.diff_error == "the in-place workspace is not a git checkout"


def test_a_skill_that_lies_in_place_stays_as_it_is(bench) -> None:
    skill = bench.project.skill("helper")
    executor = ScriptedExecutor()
    before = tree_digest(skill)
    outcome = bench.run(bench.stimulus(), executor, item={**in_place(skill.parent), "skills": (skill,)})
    assert outcome.status == "success", outcome.error
    assert executor.options[0].skills[0].path == skill / "SKILL.md"
    assert tree_digest(skill) == before


def test_two_skills_of_one_name_are_an_error(bench, tmp_path: Path) -> None:
    first = bench.project.skill("helper")
    second = tmp_path / "other" / "helper"
    second.mkdir(parents=True)
    (second / "SKILL.md").write_text("# other\n")
    outcome = bench.run(bench.stimulus(), item={"skills": (first, second)})
    assert outcome.error.code == "skill-name-collision"


def test_a_broken_skill_is_offered_as_it_is(bench) -> None:
    path = bench.project.file("skills/broken/SKILL.md", "---\nname: [\n---\ntext\n")
    executor = ScriptedExecutor()
    outcome = bench.run(bench.stimulus(), executor, item={"skills": (path.parent,)})
    assert outcome.status == "success", outcome.error
    assert [(skill.name, skill.raw_content) for skill in executor.options[0].skills] == [("broken", path.read_text())]
