"""Options about plugins are known before any plugin is imported, and what plugins raise ends no run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vally.testing import run_cli

MODULE = """
import sys
print("IMPORTED")
from vally import GraderSpec, GraderResult, ReporterSpec, hookimpl

class Always:
    def grade(self, input):
        return GraderResult.verdict(True, "from {where}")

@hookimpl
def vally_graders():
    yield GraderSpec(name="acme-always", summary="passes", factory=Always)

@hookimpl
def vally_reporters():
    yield ReporterSpec(name="acme-report", summary="says nothing", factory=object, option="acme-report")
"""
METADATA = "Metadata-Version: 2.1\nName: acme-twin\nVersion: 1.3\n"
ENTRY_POINTS = "[vally.graders]\nacme = acme_twin\n[vally.reporters]\nacme = acme_twin\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory for `PYTHONPATH` with an installed package of a stranger."""
    info = tmp_path / "site" / "acme_twin-1.3.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    package = tmp_path / "site" / "acme_twin"
    package.mkdir()
    (package / "__init__.py").write_text(MODULE.replace("{where}", "the installed copy"))
    return tmp_path / "site"


def source(root: Path) -> None:
    """The same package as a directory with sources."""
    package = root / "acme-twin" / "src" / "acme_twin"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(MODULE.replace("{where}", "the directory"))
    (root / "acme-twin" / "pyproject.toml").write_text(
        '[project]\nname = "acme-twin"\nversion = "2.0"\n'
        '[project.entry-points."vally.graders"]\nacme = "acme_twin"\n'
        '[project.entry-points."vally.reporters"]\nacme = "acme_twin"\n'
    )


def write(root: Path, grader: str = "exit-success", executor: str = "mock") -> None:
    spec = {
        "name": "e",
        "defaults": {"executor": executor},
        "stimuli": [{"name": name, "prompt": "p", "graders": [{"type": grader}]} for name in ("s", "t")],
    }
    (root / "eval.yaml").write_text(json.dumps(spec))


def vally(root: Path, site: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vally", "eval", "-e", "eval.yaml", *args],
        cwd=root,
        env={"PATH": os.environ["PATH"], "HOME": str(root), "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("options", [["--no-plugins"], ["--no-plugin", "acme-twin"], ["--no-plugin=acme_twin"]])
def test_a_plugin_that_is_left_out_is_not_imported(tmp_path: Path, site: Path, options: list[str]) -> None:
    write(tmp_path)
    done = vally(tmp_path, site, *options)
    assert done.returncode == 0, done.stderr
    assert "IMPORTED" not in done.stdout + done.stderr


def test_a_directory_shadows_the_installed_copy_of_it(tmp_path: Path, site: Path) -> None:
    write(tmp_path, "acme-always")
    source(tmp_path)
    done = vally(tmp_path, site, "--grader-plugin", "./acme-twin", "--output", "jsonl")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout.splitlines()[0])
    assert record["gradeResult"]["details"][0]["evidence"] == "from the directory"


def test_what_a_plugin_prints_when_imported_stays_out_of_machine_output(tmp_path: Path, site: Path) -> None:
    write(tmp_path)
    done = vally(tmp_path, site, "--output", "jsonl")
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["type"] for line in done.stdout.splitlines()] == ["trial-result"] * 2 + ["run-summary"]


PANIC = """
from vally import ExecutorSpec, GraderSpec, ReporterSpec
class Panic(BaseException): pass
class Bad:
    def grade(self, input): raise Panic("no")
    async def execute(self, stimulus, options): raise Panic("no")
    async def shutdown(self): pass
class BadReporter:
    def on_trial_result(self, event): raise Panic("no")
class BadAsync(Bad):
    async def grade(self, input): raise Panic("no")
    def execute(self, stimulus, options): raise Panic("no")
A = GraderSpec(name="panics", summary="panics", factory=Bad)
B = GraderSpec(name="panics-async", summary="panics", factory=BadAsync)
C = ExecutorSpec(name="panics", summary="panics", factory=Bad)
D = ExecutorSpec(name="panics-sync", summary="panics", factory=BadAsync)
E = ReporterSpec(name="panics", summary="panics", factory=BadReporter)
"""


@pytest.mark.parametrize(
    ("grader", "executor", "kind", "text"),
    [
        ("panics", "mock", "grader", "Grader execution error: Panic: no"),
        ("panics-async", "mock", "grader", "Grader execution error: Panic: no"),
        ("exit-success", "panics", "executor", "Panic: no"),
        ("exit-success", "panics-sync", "executor", "Panic: no"),
        ("exit-success", "mock", "reporter", "reporter 'panics' failed and is disabled"),
    ],
)
def test_a_panic_of_a_plugin_is_an_error_like_any_other(
    tmp_path: Path, grader: str, executor: str, kind: str, text: str
) -> None:
    write(tmp_path, grader, executor)
    (tmp_path / "panic.py").write_text(PANIC)
    options = [word for option in ("grader", "executor", kind) for word in (f"--{option}-plugin", "./panic.py")]
    result = run_cli(["eval", "-e", "eval.yaml", *options], cwd=tmp_path)
    assert [record["type"] for record in result.records] == ["trial-result"] * 2 + ["run-summary"]
    assert text in json.dumps(result.records) + result.stderr
    assert "Traceback" not in result.stderr
    assert result.exit_code == (0 if kind == "reporter" else 1)


def test_verbose_shows_what_the_agent_says(tmp_path: Path) -> None:
    write(tmp_path)
    result = run_cli(["eval", "-e", "eval.yaml", "--verbose"], cwd=tmp_path)
    assert "running: p" in result.stderr


def test_options_that_do_nothing_for_a_plan_say_so(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "w").mkdir()
    result = run_cli(["eval", "-e", "eval.yaml", "--workspace", "w", "--in-place", "--max-retries", "1"], cwd=tmp_path)
    assert "--in-place: 2 trials follow each other in one directory" in result.stderr
    again = run_cli(["eval", "-e", "eval.yaml", "--runs", "2", "--max-retries", "1"], cwd=tmp_path)
    assert "--max-retries does not apply to evals with 2 or more runs: e" in again.stderr


@pytest.mark.parametrize(("args", "code"), [(["--version"], 0), (["--help"], 0), (["plugins", "list"], 1)])
def test_a_removed_current_directory_is_one_line(tmp_path: Path, args: list[str], code: int) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, "-m", "vally", *args],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert (code == 0) or "the current directory does not exist any more" in done.stderr


def test_recorded_paths_are_relative_to_the_project(tmp_path: Path) -> None:
    (tmp_path / ".vally.yaml").write_text("")
    skill = tmp_path / "skills" / "greet"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: greet\ndescription: Greets.\n---\n")
    (tmp_path / "a.txt").write_text("a\n")
    environment = {"skills": ["../skills/greet"], "files": [{"src": "../a.txt", "dest": "a.txt"}]}
    (tmp_path / "evals").mkdir()
    spec = {
        "name": "e",
        "defaults": {"executor": "mock"},
        "stimuli": [{"name": "s", "prompt": "p", "environment": environment, "graders": [{"type": "completed"}]}],
    }
    (tmp_path / "evals" / "eval.yaml").write_text(json.dumps(spec))
    result = run_cli(["eval", "-e", "evals/eval.yaml"], cwd=tmp_path)
    recorded = result.records[0]["trajectory"]["stimulus"]["environment"]
    assert recorded["skills"] == ["skills/greet"]
    assert recorded["files"][0]["src"] == "a.txt"
