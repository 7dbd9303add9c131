"""The library as a script of a user has it: installed plugins, a file, a few lines."""

from __future__ import annotations

from pathlib import Path

from vally import Trajectory, grade_trajectory, load_eval_spec

SPEC = "stimuli:\n  - {name: a, prompt: p, graders: [{type: file-exists, config: {path: x}}]}\n"


def test_installed_plugins_check_a_spec(tmp_path: Path) -> None:
    (tmp_path / "ok.yaml").write_text(SPEC)
    assert load_eval_spec(tmp_path / "ok.yaml").stimuli[0].graders[0].type == "file-exists"


def test_installed_plugins_grade_a_trajectory_in_three_lines(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    graders = [{"type": "file-exists", "config": {"path": "x"}}, {"type": "run-command", "config": {"command": "ls"}}]
    grade = grade_trajectory(Trajectory(work_dir=str(tmp_path)), graders)
    assert (grade.passed, grade.evidence) == (True, "2/2 graders passed")
