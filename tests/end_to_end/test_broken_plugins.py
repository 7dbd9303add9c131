"""Plugins that break: one clear line each, no traceback, and the exit code that fits how they were given."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from plugin_sites import Site, provider

from vally.testing import CliResult, ProjectBuilder, run_cli

RAISING_FACTORY = provider("broken").replace("factory=dict", "factory='broken_factory:Grader'")
SOURCES = {
    "import": "raise OSError('no such device')\n",
    "hook": "from vally import hookimpl\n@hookimpl\ndef vally_graders():\n    raise OSError('no such device')\n",
    "api": provider("broken", api=2),
}
REASONS = {
    "import": "OSError: no such device",
    "hook": "OSError: no such device",
    "api": "needs plugin API 2, this program provides 1",
}


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    made = ProjectBuilder(tmp_path / "project")
    made.eval("plain", [{"prompt": "hi", "graders": [{"type": "completed"}]}], defaults={"executor": "mock"})
    made.eval("uses", [{"prompt": "hi", "graders": [{"type": "broken"}]}], defaults={"executor": "mock"})
    return made


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    made = Site(tmp_path / "site")
    made.path.mkdir()
    monkeypatch.syspath_prepend(str(made.path))
    yield made
    for name in ("broken_plugin", "broken_factory"):
        sys.modules.pop(name, None)


def install(site: Site, source: str) -> None:
    files = {"broken_plugin.py": source, "broken_factory.py": "def Grader():\n    raise OSError('no such device')\n"}
    site.distribution("broken-dist", "2.0", graders={"broken-label": "broken_plugin"}, files=files)


def run(project: ProjectBuilder, name: str, *words: str | Path) -> CliResult:
    spec = project.root / "evals" / name / "eval.yaml"
    result = run_cli(["eval", "-e", spec, "--output-dir", "out", "--quiet", *words], cwd=project.root)
    assert "Traceback" not in result.stdout + result.stderr
    return result


@pytest.mark.parametrize("case", SOURCES)
def test_installed_and_not_needed(project: ProjectBuilder, site: Site, case: str) -> None:
    install(site, SOURCES[case])
    result = run(project, "plain")
    assert result.exit_code == 0
    assert f"warning: plugin 'broken-label' of broken-dist 2.0 cannot be used: {REASONS[case]}\n" in result.stderr


@pytest.mark.parametrize("case", SOURCES)
def test_installed_and_needed(project: ProjectBuilder, site: Site, case: str) -> None:
    install(site, SOURCES[case])
    result = run(project, "uses")
    assert (result.exit_code, result.run_dir) == (1, None)
    assert "unknown grader type 'broken' [unknown-grader-type]\n" in result.stderr
    assert f"broken-label ({REASONS[case]})" in result.stderr


@pytest.mark.parametrize("name", ["plain", "uses"])
@pytest.mark.parametrize("case", SOURCES)
def test_explicit(project: ProjectBuilder, case: str, name: str) -> None:
    project.file("broken.py", SOURCES[case])
    result = run(project, name, "--grader-plugin", "./broken.py")
    assert (result.exit_code, result.run_dir) == (1, None)
    assert f"error: plugin './broken.py': {REASONS[case]} [plugin-load-failed]\n" in result.stderr


def test_a_factory_that_raises_is_an_error_once_it_is_needed(project: ProjectBuilder, site: Site) -> None:
    install(site, RAISING_FACTORY)
    assert run(project, "plain").exit_code == 0
    result = run(project, "uses")
    assert (result.exit_code, result.run_dir) == (1, None)
    problem = (
        "grader 'broken' of broken-dist 2.0: broken_factory:Grader: OSError: no such device [plugin-load-failed]\n"
    )
    assert problem in result.stderr
    assert run(project, "uses", "--skip-grade").exit_code == 0


def test_every_plugin_that_was_named_is_reported(project: ProjectBuilder) -> None:
    project.file("one.py", SOURCES["import"])
    project.file("two.py", SOURCES["api"])
    words = ["--grader-plugin", "./one.py", "--grader-plugin", "./two.py", "--executor-plugin", "./none.py"]
    result = run(project, "plain", *words)
    assert result.exit_code == 1
    for text in (
        "plugin './one.py': OSError: no such device",
        "plugin './two.py': needs plugin API 2, this program provides 1",
        "plugin './none.py': no entry point, distribution, module or path of that name",
    ):
        assert f"error: {text} [plugin-load-failed]\n" in result.stderr


def test_an_unknown_keyword_is_let_through_without_validation(project: ProjectBuilder) -> None:
    result = run(project, "uses", "--skip-validate")
    assert result.exit_code == 1
    assert result.run_dir is not None
    assert result.records[0]["gradeResult"]["details"][0]["evidence"] == "unknown grader type 'broken'"
