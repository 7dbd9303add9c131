"""`vally migrate`: files and directories, project files, what is printed and what is left."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

import pytest

from vally.testing import CliResult, ProjectBuilder, tree_digest

Run = Callable[..., CliResult]
OLD = "config: {runs: 2}\nstimuli: [{name: a, prompt: p}]\n"
NEW = "defaults: {runs: 2}\nstimuli: [{name: a, prompt: p}]\n"


def test_a_file(project: ProjectBuilder, run: Run) -> None:
    path = project.file("eval.yaml", OLD)
    result = run("migrate", "eval.yaml")
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "Migrated eval.yaml (1 change)\n1 of 1 file changed\n",
        "",
    )
    assert path.read_text() == NEW


def test_check_writes_nothing(project: ProjectBuilder, run: Run) -> None:
    project.file("eval.yaml", OLD)
    before = tree_digest(project.root)
    result = run("migrate", "--check", "eval.yaml")
    assert (result.exit_code, result.stdout) == (1, "Would migrate eval.yaml (1 change)\n1 of 1 file would change\n")
    assert tree_digest(project.root) == before


def test_a_diff_is_printed_and_not_written(project: ProjectBuilder, run: Run) -> None:
    project.file("evals/eval.yaml", OLD)
    before = tree_digest(project.root)
    result = run("migrate", "--diff", "evals")
    assert result.exit_code == 0
    assert result.stdout == (
        "--- a/evals/eval.yaml\n+++ b/evals/eval.yaml\n@@ -1,2 +1,2 @@\n"
        "-config: {runs: 2}\n+defaults: {runs: 2}\n stimuli: [{name: a, prompt: p}]\n"
    )
    assert tree_digest(project.root) == before
    assert run("migrate", "--diff", "--check", "evals").exit_code == 1


def test_a_directory_stands_for_what_vally_reads_in_it(project: ProjectBuilder, run: Run) -> None:
    for name in ("eval.yaml", "deep/er/x.eval.yml", "other.yaml"):
        project.file(name, OLD)
    project.file("unrelated.yaml", "config: {runs: 2}\n")
    project.file("broken.yaml", "a: [\n")
    for skipped in ("node_modules", ".git", "__pycache__"):
        project.file(f"{skipped}/eval.yaml", OLD)
    project.file("run/results.jsonl", "")
    project.file("run/eval.yaml", OLD)
    result = run("migrate", ".")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == (
        "Migrated eval.yaml (1 change)\nMigrated other.yaml (1 change)\n"
        "Migrated deep/er/x.eval.yml (1 change)\n3 of 3 files changed\n"
    )


def test_a_file_named_twice_is_taken_once(project: ProjectBuilder, run: Run) -> None:
    project.file("eval.yaml", OLD)
    assert run("migrate", "eval.yaml", ".", "./eval.yaml").stdout.endswith("1 of 1 file changed\n")


def test_quietly(project: ProjectBuilder, run: Run) -> None:
    path = project.file("eval.yaml", OLD)
    assert run("migrate", "-q", "eval.yaml").stdout == ""
    assert path.read_text() == NEW


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("missing.yaml", None, "error: missing.yaml: no such file or directory\n"),
        ("notes.yaml", "a: b\n", "error: notes.yaml: neither an eval spec nor an experiment nor a project file\n"),
    ],
)
def test_what_cannot_be_migrated(project: ProjectBuilder, run: Run, name: str, text: str | None, problem: str) -> None:
    if text is not None:
        project.file(name, text)
    result = run("migrate", name)
    assert (result.exit_code, result.stderr) == (1, problem)


def test_a_file_that_cannot_be_read_does_not_keep_others(project: ProjectBuilder, run: Run) -> None:
    project.file("a.yaml", "stimuli: [\n")
    good = project.file("b.yaml", OLD)
    result = run("migrate", ".")
    assert result.exit_code == 1
    assert "error: a.yaml:2:1: YAML syntax error" in result.stderr
    assert good.read_text() == NEW


def test_other_mistakes_are_no_obstacle(project: ProjectBuilder, run: Run) -> None:
    text = "config: {runs: 2, tmieout: 3}\nstimuli: [{name: a, prompt: p, graders: [{type: surely-not}]}]\n"
    path = project.file("eval.yaml", text)
    result = run("migrate", "eval.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    assert path.read_text() == text.replace("config", "defaults")


def test_what_is_missing_is_no_obstacle_to_a_list(project: ProjectBuilder, run: Run) -> None:
    text = "environment: {skills: none}\nstimuli: [{name: a, prompt: p, graders: []}]\n"
    path = project.file("eval.yaml", text)
    result = run("migrate", "eval.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    assert path.read_text() == text.replace("none", "[none]")


def test_two_names_of_one_key_are_left(project: ProjectBuilder, run: Run) -> None:
    path = project.file("eval.yaml", "defaults: {}\n" + OLD)
    result = run("migrate", "eval.yaml")
    assert (result.exit_code, result.stdout) == (0, "0 of 1 file changed\n")
    assert "cannot specify both 'config' and 'defaults' [config-and-defaults]" in result.stderr
    assert path.read_text() == "defaults: {}\n" + OLD


def test_modes_and_links_stay(project: ProjectBuilder, run: Run) -> None:
    path = project.file("real/eval.yaml", OLD)
    path.chmod(0o640)
    (project.root / "link.yaml").symlink_to(path)
    assert run("migrate", "link.yaml").exit_code == 0
    assert (project.root / "link.yaml").is_symlink()
    assert path.read_text() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_no_plugin_of_a_project_is_loaded(project: ProjectBuilder, run: Run) -> None:
    project.file("plugin.py", "import pathlib\npathlib.Path(__file__).with_suffix('.loaded').touch()\n")
    project.project(plugins={"graders": ["./plugin.py"]})
    project.file("eval.yaml", OLD)
    assert run("migrate", ".").exit_code == 0
    assert not (project.root / "plugin.loaded").exists()


PROJECT = "suites: {a: {evals: x}}\nenvironments:\n  base: {commands: make, commandTimeout: 30}  # why\n"
NEWER = "suites: {a: {evals: x}}\nenvironments:\n  base: {commands: [make], commandTimeout: 30s}  # why\n"


def test_a_project_file(project: ProjectBuilder, run: Run) -> None:
    path = project.file(".vally.yaml", PROJECT)
    assert run("migrate", ".").stdout == "Migrated .vally.yaml (2 changes)\n1 of 1 file changed\n"
    assert path.read_text() == NEWER
    assert run("migrate", "--check", ".").exit_code == 0


def test_a_project_file_of_the_old_name(project: ProjectBuilder, run: Run) -> None:
    path = project.file(".vally.yml", PROJECT)
    checked = run("migrate", "--check", ".")
    assert (checked.exit_code, checked.stdout.splitlines()[1]) == (1, "Would rename .vally.yml to .vally.yaml")
    assert run("migrate", "--diff", ".").stdout.startswith("rename from .vally.yml\nrename to .vally.yaml\n")
    assert path.exists()
    result = run("migrate", ".vally.yml")
    assert result.stdout == (
        "Migrated .vally.yml (2 changes)\nRenamed .vally.yml to .vally.yaml\n1 of 1 file changed\n"
    )
    assert not path.exists()
    assert (project.root / ".vally.yaml").read_text() == NEWER


def test_a_name_that_is_taken(project: ProjectBuilder, run: Run) -> None:
    project.file(".vally.yaml", "{}\n")
    path = project.file(".vally.yml", "metadata: {}\n")
    assert run("migrate", ".").exit_code == 0
    assert path.exists()


def legacy(project: ProjectBuilder, *folders: str, text: str = "src: data/f.txt") -> str:
    for folder in folders:
        project.file(f"evals/{folder}/data/f.txt", "x\n")
        project.file(f"evals/{folder}/eval.yaml", "environment: base\nstimuli: [{name: a, prompt: p}]\n")
    content = f"environments:\n  base:\n    files:\n      - {{{text}, dest: f.txt}}  # why\n"
    project.file(".vally.yaml", content)
    return content


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("src: data/f.txt", "src: evals/one/data/f.txt"),
        ("src: './data/f.txt'", "src: 'evals/one/data/f.txt'"),
        ("src: data/", "src: evals/one/data/"),
    ],
)
def test_paths_that_were_meant_from_the_spec(project: ProjectBuilder, run: Run, text: str, after: str) -> None:
    before = legacy(project, "one", text=text)
    assert run("migrate", ".vally.yaml").exit_code == 0
    assert (project.root / ".vally.yaml").read_text() == before.replace(text, after)
    assert run("migrate", "--check", ".").exit_code == 0


def test_paths_that_mean_different_things_are_left(project: ProjectBuilder, run: Run) -> None:
    before = legacy(project, "one", "two")
    result = run("migrate", ".")
    assert (result.exit_code, result.stdout) == (0, "0 of 3 files changed\n")
    assert "'data/f.txt' was found relative to the spec" in result.stderr
    assert (project.root / ".vally.yaml").read_text() == before


EXPERIMENT = """\
name: try
evals: evals/*/eval.yaml
vary: [/config/model, /environment/skills]   # older
grader_plugins: [acme]
overrides: {timeout: 60}
variants:
  off:
    environment: {skills: []}
    overrides: {model: a}
  on:
    overrides: {model: b, max_agent_duration: "30"}
    environment:
      skills: skills/one
      mcpServers:
        db: {command: x}
"""


def test_an_experiment(project: ProjectBuilder, run: Run) -> None:
    project.skill("one")
    project.eval("first")
    path = project.file("try.yaml", EXPERIMENT)
    result = run("migrate", "try.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    expected = (
        EXPERIMENT.replace("/config/model", "/defaults/model")
        .replace("grader_plugins", "x-grader_plugins")
        .replace("timeout: 60", "timeout: 60s")
        .replace('"30"', '"30s"')
        .replace("skills: skills/one", "skills: [skills/one]")
        .replace("{command: x}", "{type: stdio, command: x}")
    )
    assert path.read_text() == expected
    assert run("migrate", "--check", "try.yaml").exit_code == 0


def test_a_matrix(project: ProjectBuilder, run: Run) -> None:
    project.eval("first")
    text = "name: m\nevals: [evals/first]\nmatrix:\n  model: {path: /config/model, values: [a, b]}\n"
    path = project.file("m.yaml", text)
    assert run("migrate", "m.yaml").exit_code == 0
    assert path.read_text() == text.replace("/config/", "/defaults/")


def test_a_removed_key_is_left_to_a_person(project: ProjectBuilder, run: Run) -> None:
    project.eval("first")
    text = "name: m\nfilter: {a: b}\nevals: [evals/first]\nmatrix:\n  m: {path: /defaults/model, values: [a, b]}\n"
    path = project.file("m.yaml", text)
    result = run("migrate", "m.yaml")
    assert "'filter' is no longer supported [removed-key]\n  use --eval-filter" in result.stderr
    assert path.read_text() == text


def test_a_file_that_cannot_be_written(project: ProjectBuilder, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project.file("eval.yaml", OLD)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("vally_command_scaffold.migrating.atomic_write", refuse)
    result = run("migrate", "eval.yaml")
    assert result.exit_code == 1
    assert "error: eval.yaml: cannot write the file: Permission denied\n" in result.stderr
    assert path.read_text() == OLD
    assert os.listdir(project.root) == ["eval.yaml"]  # noqa: PTH208
