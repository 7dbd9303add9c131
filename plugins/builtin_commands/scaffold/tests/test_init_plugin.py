"""`vally init --plugin`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forgotten import forgotten

from vally.testing import CliResult, ProjectBuilder, run_cli

Run = Callable[..., CliResult]

KINDS = ["grader", "executor", "reporter"]


@pytest.fixture(autouse=True)
def _packages() -> Iterator[None]:
    """Every test may make and load packages of these names."""
    with forgotten(*(f"vally_{kind}_example" for kind in KINDS)):
        yield


@pytest.mark.heavy
@pytest.mark.parametrize("kind", KINDS)
def test_a_package_whose_tests_pass(project: ProjectBuilder, run: Run, kind: str) -> None:
    result = run("init", "--plugin", kind)
    assert result.exit_code == 0, result.stderr
    folder = project.root / f"vally-{kind}-example"
    package = f"src/vally_{kind}_example"
    written = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert written == sorted(
        [
            "README.md",
            "pyproject.toml",
            f"{package}/__init__.py",
            f"{package}/{kind}.py",
            f"{package}/plugin.py",
            f"{package}/py.typed",
            f"tests/test_{kind}.py",
        ]
    )
    pass_own_tests(folder)


def pass_own_tests(folder: Path) -> None:
    argv = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", folder.name]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(argv, cwd=folder.parent, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.mark.parametrize("kind", KINDS)
def test_a_directory_that_is_a_plugin(project: ProjectBuilder, run: Run, kind: str) -> None:
    run("init", "--plugin", kind)
    option = [f"--{kind}-plugin", f"./vally-{kind}-example"]
    listed = run_cli(["plugins", "list", "--kind", kind, "--strict", *option], cwd=project.root)
    assert listed.exit_code == 0, listed.stderr
    rows = [line.split() for line in listed.stdout.splitlines()]
    assert [kind, "example", "0.1.0", f"./vally-{kind}-example", "ok"] in [row[:5] for row in rows]


def test_what_is_printed(run: Run) -> None:
    result = run("init", "--plugin", "grader", "my graders")
    created, following = result.stdout.split("Next:\n")
    assert created.splitlines()[0] == "Created my graders/README.md"
    assert following == (
        "  pip install -e 'my graders[test]'\n"
        "  pytest 'my graders'\n"
        "  vally plugins list --kind grader --grader-plugin './my graders'\n"
    )


@pytest.mark.parametrize(
    ("folder", "distribution", "package", "keyword"),
    [
        ("vally-grader-short-answers", "vally-grader-short-answers", "vally_grader_short_answers", "short-answers"),
        ("Acme_Graders", "acme-graders", "acme_graders", "acme"),
        ("acme-vally", "acme-vally", "acme_vally", "acme-vally"),
        ("graders", "graders", "graders", "graders"),
        ("x" * 80, "x" * 80, "x" * 80, "x" * 60),
    ],
)
def test_names_follow_the_directory(
    project: ProjectBuilder, run: Run, folder: str, distribution: str, package: str, keyword: str
) -> None:
    result = run("init", "--plugin", "grader", folder)
    assert result.exit_code == 0, result.stderr
    made = project.root / folder
    metadata = (made / "pyproject.toml").read_text()
    assert f'name = "{distribution}"' in metadata
    assert f'{keyword} = "{package}.plugin"' in metadata
    assert (made / "src" / package / "grader.py").is_file()
    listed = run_cli(["plugins", "list", "--kind", "grader", "--grader-plugin", f"./{folder}"], cwd=project.root)
    assert keyword in listed.stdout


@pytest.mark.parametrize("folder", ["123", "vally", "json", "---", "class"])
def test_names_that_cannot_be(project: ProjectBuilder, run: Run, folder: str) -> None:
    result = run("init", "--plugin", "grader", "--", folder)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: DIR: '{folder}' cannot be the name of a package\n  use letters")
    assert not (project.root / folder).exists()


def test_a_directory_with_files_is_kept(project: ProjectBuilder, run: Run) -> None:
    path = project.file("mine/README.md", "mine\n")
    result = run("init", "--plugin", "grader", "mine")
    assert (result.exit_code, result.stderr) == (
        1,
        "error: mine: the directory is not empty\n  overwrite it with --force\n",
    )
    assert [item.name for item in path.parent.iterdir()] == ["README.md"]
    assert run("init", "--plugin", "grader", "mine", "--force").exit_code == 0
    assert path.read_text() != "mine\n"


def test_an_empty_directory_is_used(project: ProjectBuilder, run: Run) -> None:
    (project.root / "empty").mkdir()
    assert run("init", "--plugin", "reporter", "empty").exit_code == 0


def test_a_file_in_its_place(project: ProjectBuilder, run: Run) -> None:
    project.file("mine", "")
    result = run("init", "--plugin", "grader", "mine")
    assert result.stderr.startswith("error: mine: this is a file\n")
