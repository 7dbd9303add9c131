"""Records name files in the same way from wherever a command was started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vally.testing import CliResult, ProjectBuilder, run_cli


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    """A directory deep inside of a project."""
    made = ProjectBuilder(tmp_path / "project")
    made.project(suites={"all": {"filter": {"area": "x"}}})
    stimuli = [{"name": "s", "prompt": "hello", "graders": [{"type": "completed"}]}]
    made.yaml(
        "evals/a/eval.yaml", {"name": "a", "tags": {"area": "x"}, "defaults": {"executor": "mock"}, "stimuli": stimuli}
    )
    made.yaml(
        "experiment.yaml",
        {
            "name": "e",
            "baseline": "one",
            "vary": ["/defaults/model"],
            "variants": {"one": {"overrides": {"model": "m1"}}, "two": {"overrides": {"model": "m2"}}},
            "evals": ["evals/a/eval.yaml"],
        },
    )
    (made.root / "sub/deep").mkdir(parents=True)
    return made.root / "sub/deep"


@pytest.mark.parametrize(
    "words",
    [
        ["eval", "-e", "../../evals"],
        ["eval", "-e", "./../../evals/a/eval.yaml"],
        ["eval", "-e", "../../sub/../evals/a"],
        ["eval", "-e", "../../evals/**/*.yaml"],
        ["eval", "-e", "../../evals", "--config", "../../.vally.yaml"],
        ["eval", "--suite", "all", "--config", "../../.vally.yaml"],
        ["eval", "--suite", "all"],
        ["experiment", "run", "../../experiment.yaml"],
        ["experiment", "run", "../../experiment.yaml", "--config", "../deep/../../.vally.yaml"],
    ],
    ids=" ".join,
)
def test_a_file_below_the_project_is_named_from_its_root(deep: Path, words: list[str]) -> None:
    result = run_cli([*words, "--output", "jsonl"], cwd=deep)
    assert result.exit_code == 0, result.stderr
    trial = json.loads(result.stdout.splitlines()[0])
    assert trial["evalFilePath"] == "evals/a/eval.yaml"
    assert trial["itemId"].startswith("evals/a/eval.yaml::")


def directory(result: CliResult) -> str:
    return result.stdout.splitlines()[-1].removeprefix("Output directory: ").rpartition("/")[0]


def test_directories_are_named_without_detours(deep: Path) -> None:
    project = deep.parent.parent
    for word, shown in {
        "../out": "sub/out",
        "../../out": "out",
        "../../../out": (project.parent / "out").as_posix(),
        str(deep / "../out"): "sub/out",
        "out": "sub/deep/out",
    }.items():
        for words in (["eval", "-e", "../../evals"], ["experiment", "run", "../../experiment.yaml"]):
            assert directory(run_cli([*words, "--quiet", "--output-dir", word], cwd=deep)) == shown
