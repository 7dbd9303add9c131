"""Every command that takes a run knows it by the same words."""

from __future__ import annotations

from pathlib import Path

import pytest

from vally.testing import CliResult, ProjectBuilder, run_cli

GRADERS = [{"type": "output-contains", "config": {"substring": "hello"}}]
EXPERIMENT = """\
name: words
baseline: a
vary: [/defaults/model]
variants: {a: {overrides: {model: m1}}, b: {overrides: {model: m2}}}
evals: [eval.yaml]
"""
NAMING: dict[str, tuple[str, ...]] = {
    "show": ("show", "RUN"),
    "rejudge": ("rejudge", "RUN"),
    "runs": ("runs", "RUN"),
    "ingest": ("ingest", "RUN", "--dry-run"),
    "grade": ("grade", "-e", "eval.yaml", "RUN"),
    "resume": ("eval", "--resume", "RUN"),
}
REFUSING = {
    **NAMING,
    "serve": ("serve", "RUN", "--port", "0"),
    "simulate": ("simulate", "record", "RUN"),
    "compare": ("compare", "RUN"),
    "baseline": ("compare", "--baseline", "RUN", "--treatment", "RUN"),
    "experiment": ("experiment", "run", "--resume", "RUN"),
}


class Project:
    """A project with one run of an eval."""

    def __init__(self, root: Path) -> None:
        self.root = root
        made = ProjectBuilder(root)
        stimuli = [{"name": "s", "prompt": "hello", "graders": GRADERS}]
        made.yaml("eval.yaml", {"name": "words", "defaults": {"executor": "mock"}, "stimuli": stimuli})
        made.file("experiment.yaml", EXPERIMENT)
        self.run_eval("--run-id", "the-id")

    def run_eval(self, *words: str) -> CliResult:
        return self.vally("eval", "-e", "eval.yaml", *words)

    def vally(self, *words: str) -> CliResult:
        return run_cli(words, cwd=self.root)

    def using(self, words: tuple[str, ...], run: str) -> CliResult:
        return self.vally(*(run if word == "RUN" else word for word in words))

    @property
    def run(self) -> Path:
        (path,) = (self.root / "vally-results").iterdir()
        return path


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize("command", NAMING)
def test_a_run_is_known_by_its_name_its_id_and_as_the_latest(project: Project, command: str) -> None:
    said = set()
    for word in ("latest", "the-id", project.run.name, f"vally-results/{project.run.name}"):
        result = project.using(NAMING[command], word)
        assert result.exit_code == 0, result.stderr
        said.add(result.stdout.splitlines()[0])
    assert len(said) == 1


@pytest.mark.parametrize("command", REFUSING)
def test_a_run_that_is_not_there_brings_what_was_meant(project: Project, command: str) -> None:
    for word, meant in ((project.run.name[:-1], project.run.name), ("the-idd", "the-id"), ("lates", "latest")):
        result = project.using(REFUSING[command], word)
        assert (result.exit_code, result.stdout) == (1, "")
        assert f"no run directory, results file or run id '{word}' [no-run]" in result.stderr
        assert f"did you mean '{meant}'?" in result.stderr


@pytest.mark.parametrize("command", REFUSING)
def test_without_runs_there_is_no_latest(tmp_path: Path, command: str) -> None:
    (tmp_path / "eval.yaml").write_text("name: x\nstimuli: [{name: s, prompt: p}]\n")
    words = (*("latest" if word == "RUN" else word for word in REFUSING[command]),)
    result = run_cli(words, cwd=tmp_path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "in vally-results, vally-experiment-results [no-runs]" in result.stderr


def test_the_latest_is_one_that_a_command_can_use(project: Project) -> None:
    made = project.vally("experiment", "run", "experiment.yaml")
    assert made.exit_code == 0, made.stderr
    assert "vally-experiment-results" in project.vally("show", "latest").stdout
    assert "vally-experiment-results" in project.vally("experiment", "run", "--resume", "latest").stdout
    assert "vally-results" in project.vally("eval", "--resume", "latest").stdout
    assert "Compare  a → b" in project.vally("compare", "latest").stdout
    assert "Compare  vally-results/" in project.vally("compare", "--baseline", "latest", "--treatment", "the-id").stdout
    # An experiment is all its variants.
    graded = project.vally("grade", "-e", "eval.yaml", "latest", "--output", "jsonl")
    assert [line.count('"variant":"') > 0 for line in graded.stdout.splitlines()[:2]] == [True, True]
    place = next((project.root / "vally-experiment-results").iterdir())
    refused = project.vally("compare", "--baseline", str(place), "--treatment", "latest")
    assert (refused.exit_code, "name a directory in it: a, b" in refused.stderr) == (1, True)


def test_where_evals_leave_results_says_nothing_about_experiments(project: Project) -> None:
    (project.root / ".vally.yaml").write_text("paths: {results: elsewhere}\n")
    project.run_eval()
    assert "elsewhere/" in project.vally("show", "latest").stdout
    project.vally("experiment", "run", "experiment.yaml")
    assert "vally-experiment-results/" in project.vally("show", "latest").stdout


def test_a_path_comes_before_an_id(project: Project) -> None:
    (project.root / "the-id").write_bytes((project.run / "results.jsonl").read_bytes().splitlines(keepends=True)[1])
    result = project.vally("grade", "-e", "eval.yaml", "the-id")
    assert (result.exit_code, "nothing to grade" in result.stderr) == (1, True)
