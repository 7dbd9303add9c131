"""`vally init` for evals."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
import yaml

from vally import GraderSpec, LoadedSpec, PluginHost, read_eval_spec, read_project
from vally.testing import CliResult, ProjectBuilder, plugin_host

Run = Callable[..., CliResult]

OUTPUT = """\
Created evals/hello/eval.yaml
Next:
  vally lint -e evals/hello/eval.yaml
  vally eval -e evals/hello/eval.yaml
"""


@pytest.fixture
def host(graders: tuple[GraderSpec, ...]) -> PluginHost:
    return plugin_host(*graders)


def load(project: ProjectBuilder, path: str, host: PluginHost) -> LoadedSpec:
    return read_eval_spec(project.root / path, host=host, strict=True, lint=True)


def test_a_starter_eval(project: ProjectBuilder, run: Run, host: PluginHost) -> None:
    result = run("init")
    assert (result.exit_code, result.stdout, result.stderr) == (0, OUTPUT, "")
    loaded = load(project, "evals/hello/eval.yaml", host)
    assert loaded.diagnostics == ()
    assert loaded.spec is not None
    assert loaded.spec.name == "hello-eval"
    assert loaded.spec.defaults.executor is not None
    assert loaded.spec.defaults.executor.name == "copilot-sdk"
    (stimulus,) = loaded.spec.stimuli
    assert "hello.json" in stimulus.prompt
    assert [grader.type for grader in stimulus.graders] == ["file-exists", "file-matches"]
    assert stimulus.graders[0].config == {"path": "hello.json"}


def test_the_pattern_fits_what_the_prompt_asks_for(project: ProjectBuilder, run: Run, host: PluginHost) -> None:
    run("init")
    spec = load(project, "evals/hello/eval.yaml", host).spec
    assert spec is not None
    pattern = str(spec.stimuli[0].graders[1].config["pattern"])
    assert re.search(pattern, json.dumps({"message": "Hello, world!"}))
    assert re.search(pattern, json.dumps({"message": "Hello, world!"}, indent=2))
    assert not re.search(pattern, json.dumps({"message": "Hello"}))


def uncommented(text: str) -> tuple[str, str]:
    """The eval and the project file that the examples make: `#key` is an example, `# Words` is not."""
    lines = [re.sub(r"^( *)#(?=\S|  )", r"\1", line) for line in text.splitlines()]
    whole = "\n".join(lines)
    start = whole.index("suites:")
    return whole[:start], whole[start:]


def test_the_examples_in_comments_work(project: ProjectBuilder, run: Run, host: PluginHost) -> None:
    run("init")
    path = project.root / "evals/hello/eval.yaml"
    spec_text, project_text = uncommented(path.read_text())
    document = yaml.safe_load(spec_text)
    assert {"environment", "scoring", "tags"} <= set(document)
    assert document["stimuli"][0]["rubric"]
    assert document["stimuli"][0]["graders"][2]["type"] == "prompt"
    path.write_text(spec_text)
    project.file(".vally.yaml", project_text)
    found = read_project(project.root / ".vally.yaml")
    assert found.diagnostics == ()
    assert found.suites["smoke"].filter == {"area": ("files",)}
    assert load(project, "evals/hello/eval.yaml", host).diagnostics == ()


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("evals/config writer", "config writer-eval"),
        ("a: b", "a: b-eval"),
        ("deep/er/Übung", "Übung-eval"),
        ("123", "123-eval"),
        (".", "project-eval"),
        ("evals/x/..", "evals-eval"),
    ],
)
def test_the_name_is_that_of_the_directory(
    project: ProjectBuilder, run: Run, host: PluginHost, directory: str, name: str
) -> None:
    result = run("init", directory)
    assert result.exit_code == 0, result.stderr
    spec = load(project, f"{directory}/eval.yaml", host).spec
    assert spec is not None
    assert spec.name == name


def test_another_executor(project: ProjectBuilder, run: Run, host: PluginHost) -> None:
    run("init", "one", "--executor", "my agent: v2")
    spec = load(project, "one/eval.yaml", host).spec
    assert spec is not None
    assert spec.defaults.executor is not None
    assert spec.defaults.executor.name == "my agent: v2"


def test_what_an_executor_needs_lies_beside_the_eval(project: ProjectBuilder, run: Run) -> None:
    result = run("init", "one", "--executor", "mock")
    assert result.stdout.splitlines()[:2] == ["Created one/eval.yaml", "Created one/fixtures/writes-hello.json"]
    (project.root / "one/eval.yaml").unlink()
    again = run("init", "one", "--executor", "mock")
    assert (again.exit_code, again.stdout) == (1, "")
    assert again.stderr.startswith("error: one/fixtures/writes-hello.json: the file exists\n")
    assert not (project.root / "one/eval.yaml").exists()
    assert run("init", "one", "--executor", "mock", "--force").exit_code == 0


@pytest.mark.parametrize("name", ["fixtures", "mock/fixtures", "../executors/mock", "files", "."])
def test_a_name_of_an_executor_is_no_path(project: ProjectBuilder, run: Run, host: PluginHost, name: str) -> None:
    result = run("init", "one", "--executor", name)
    assert result.stdout.splitlines()[:2] == ["Created one/eval.yaml", "Next:"]
    spec = load(project, "one/eval.yaml", host).spec
    assert spec is not None
    assert spec.defaults.executor is not None
    assert spec.defaults.executor.name == name


def test_an_eval_that_exists_is_kept(project: ProjectBuilder, run: Run) -> None:
    path = project.file("evals/hello/eval.yaml", "mine\n")
    result = run("init")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: evals/hello/eval.yaml: the file exists\n  overwrite it with --force\n"
    assert path.read_text() == "mine\n"
    assert run("init", "--force").exit_code == 0
    assert path.read_text() != "mine\n"


def test_with_a_schema(project: ProjectBuilder, run: Run, host: PluginHost) -> None:
    result = run("init", "evals/one", "--with-schema", "schemas/eval.json")
    assert result.stdout.splitlines()[:2] == ["Created schemas/eval.json", "Created evals/one/eval.yaml"]
    text = (project.root / "evals/one/eval.yaml").read_text()
    assert text.splitlines()[0] == "# yaml-language-server: $schema=../../schemas/eval.json"
    schema = json.loads((project.root / "schemas/eval.json").read_text())
    assert "file-exists" in json.dumps(schema)
    assert load(project, "evals/one/eval.yaml", host).diagnostics == ()
    assert run("init", "evals/two", "--with-schema", "schemas/eval.json").exit_code == 0


def test_a_file_that_is_no_schema_is_kept(project: ProjectBuilder, run: Run) -> None:
    path = project.file("data.json", '{"mine": true}')
    result = run("init", "--with-schema", "data.json")
    assert result.exit_code == 1
    assert "data.json: the file exists and is no schema of vally" in result.stderr
    assert json.loads(path.read_text()) == {"mine": True}
    assert not (project.root / "evals").exists()


def test_quietly(project: ProjectBuilder, run: Run) -> None:
    assert run("init", "--quiet").stdout == ""
    assert (project.root / "evals/hello/eval.yaml").is_file()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--plugin", "grader", "--executor", "mock"], "--executor belongs to an eval"),
        (["--plugin", "grader", "--with-schema", "x.json"], "--with-schema belongs to an eval"),
        (["--plugin", "judge"], "'judge' is not one of"),
        (["one", "two"], "unexpected extra argument"),
    ],
)
def test_wrong_use(run: Run, words: list[str], problem: str) -> None:
    result = run("init", *words)
    assert result.exit_code == 2
    assert problem in result.stderr


def test_a_blank_executor(run: Run) -> None:
    result = run("init", "--executor", " ")
    assert (result.exit_code, result.stderr) == (
        1,
        "error: --executor: the name of an executor must not be blank\n",
    )


def test_a_directory_that_cannot_be_made(project: ProjectBuilder, run: Run) -> None:
    project.file("evals", "a file\n")
    result = run("init")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: evals/hello/eval.yaml: cannot write the file: ")
