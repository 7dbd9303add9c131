"""What `init` writes is clean, runs and builds; what `migrate` rewrites is clean and means the same."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from environments import UV, check
from forgotten import forgotten

import vally
from vally.testing import CliResult, ProjectBuilder, run_cli

KINDS = ["grader", "executor", "reporter"]


@pytest.fixture(autouse=True)
def _packages() -> Iterator[None]:
    """Every test may make and load packages of these names."""
    with forgotten(*(f"vally_{kind}_example" for kind in KINDS)):
        yield


def run(folder: Path, *words: str) -> CliResult:
    return run_cli(words, cwd=folder)


def test_the_starter_eval_is_clean_with_every_executor(tmp_path: Path) -> None:
    installed = vally.PluginHost().records("executor")
    assert {"mock", "command"} <= set(installed)
    for executor in (*installed, "of-somebody-else"):
        assert run(tmp_path, "init", executor, "--executor", executor).exit_code == 0
        result = run(tmp_path, "lint", "-e", f"{executor}/eval.yaml", "--strict")
        assert result.exit_code == 0, result.stdout + result.stderr


def test_the_starter_eval_is_clean(tmp_path: Path) -> None:
    assert run(tmp_path, "init").exit_code == 0
    result = run(tmp_path, "lint", "-e", "evals/hello/eval.yaml", "--strict")
    assert result.exit_code == 0, result.stdout + result.stderr


def test_the_starter_eval_of_an_executor_without_a_model_passes_as_it_is(tmp_path: Path) -> None:
    run(tmp_path, "init", "--executor", "mock")
    result = run(tmp_path, "eval", "-e", "evals/hello/eval.yaml", "--require-pass")
    assert result.exit_code == 0, result.stdout + result.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_a_plugin_package_takes_part_in_a_run(kind: str, tmp_path: Path) -> None:
    assert run(tmp_path, "init", "--plugin", kind).exit_code == 0
    made = ProjectBuilder(tmp_path)
    graders: list[dict[str, Any]] = [{"type": "output-contains", "config": {"substring": "hello"}}]
    executor: Any = "mock"
    if kind == "grader":
        graders.append({"type": "example", "config": {"max": 1}})
    if kind == "executor":
        executor = {"name": "example", "config": {"command": ["echo"]}}
    path = made.eval("one", [{"prompt": "hello", "graders": graders}], defaults={"executor": executor})
    option = [f"--{kind}-plugin", f"./vally-{kind}-example"]
    result = run(tmp_path, "eval", "-e", str(path), "--require-pass", *option)
    assert result.exit_code == 0, result.stdout + result.stderr
    assert result.run_dir is not None
    if kind == "reporter":
        assert (result.run_dir / "example.csv").read_text().count("\n") == 2
        assert "example.csv" in result.stdout


@pytest.mark.heavy
@pytest.mark.parametrize("kind", KINDS)
def test_a_plugin_package_builds(kind: str, tmp_path: Path) -> None:
    run(tmp_path, "init", "--plugin", kind)
    check([*UV, "build", "-q", "-o", tmp_path / "dist", tmp_path / f"vally-{kind}-example"], tmp_path)
    assert list((tmp_path / "dist").glob("*.tar.gz"))
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        points = archive.read(f"vally_{kind}_example-0.1.0.dist-info/entry_points.txt").decode()
    assert {f"vally_{kind}_example/{name}" for name in ("__init__.py", "plugin.py", f"{kind}.py", "py.typed")} <= names
    assert points == f"[vally.{kind}s]\nexample=vally_{kind}_example.plugin\n\n"


OLD_SPEC = """\
# Every older spelling of an eval spec.
name: old
config:            # was `defaults`
  executor: mock
  runs: ${RUNS=2}
  timeout: 120     # seconds
  max_agent_duration: "90"
environment:
  skills: ../../skills/one
  commands: |
    echo one
    echo two
  commandTimeout: ${LIMIT=45}
  mcpServers:
    files: {command: npx, args: [-y, files]}
    web:   # remote
      url: https://example.invalid/mcp
      timeout: 08
graders:
  - type: output-contains
    name: Says Hi
    config: {substring: hi}
stimuli:
  - name: first
    category: basics    # no effect
    runs: 3
    timeout: 30
    expect_activation: true
    invariants: [a]
    customized_disallow: [b]
    customized_required: [c]
    turns:
      - prompt: Say hi.
      - {prompt: "Say it again."}
      - prompt: |
          And once
          more.
    constraints: {max_duration: 20, expect_tools: bash}
    rubric:
      - Output mentions: the port
      - plain
      - [a, b]
    artifacts:
      include: '*.txt'
    graders:
      - type: output-matches
        name: looks good
        config: {pattern: hi}
      - {type: prompt, name: judged}
  - name: second
    environment: base
    prompt: hi
    config: {runs: 1}
    rubric: one thing
    graders:
      - type: output-matches
        name: looks good
        config: {pattern: ho}
      - type: prompt
        name: judged
scoring:
  weights:
    looks good: 2
    judged: 1      # a judge
    Says Hi: 1
  timeout: 60
"""
OLD_PROJECT = """\
# A project of the old name
environments:
  base:
    files:
      - {src: fixtures/f.txt, dest: f.txt}   # relative to the eval
    commands: echo hi
    commandTimeout: 30
    mcpServers:
      db:
        # the server
        command: ./db
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    made = ProjectBuilder(tmp_path / "project")
    made.skill("one")
    made.file("evals/old/fixtures/f.txt", "x\n")
    made.file("evals/old/eval.yaml", OLD_SPEC)
    made.file(".vally.yml", OLD_PROJECT)
    return made.root


def load(root: Path) -> vally.LoadedSpec:
    project = vally.find_project(root, root)
    return vally.read_eval_spec(root / "evals/old/eval.yaml", project=project, host=vally.PluginHost(), skill_dirs=True)


def plan(value: Any) -> Any:
    """A spec without positions, findings, and names of graders, of which `weights` are given for each instead."""
    if isinstance(value, vally.EvalSpec):
        weights = value.scoring.weights
        graders = [
            (entry.type, weights.get(entry.name or "", weights.get(entry.type)))
            for stimulus in value.stimuli
            for entry in stimulus.graders
        ]
        return graders, dict(_plan_fields(value, {"scoring", "document", "diagnostics"})), value.scoring.timeout_ms
    if is_dataclass(value):
        return dict(_plan_fields(value, {"position", "name" if isinstance(value, vally.GraderEntry) else ""}))
    if isinstance(value, dict):
        return {key: plan(item) for key, item in value.items() if not (key == "name" and "type" in value)}
    return [plan(item) for item in value] if isinstance(value, (list, tuple)) else value


def _plan_fields(value: Any, left_out: set[str]) -> Iterator[tuple[str, Any]]:
    yield from ((item.name, plan(getattr(value, item.name))) for item in fields(value) if item.name not in left_out)


def test_every_older_spelling(old: Path) -> None:
    before = load(old)
    assert before.spec is not None
    assert [len(stimulus.graders) for stimulus in before.spec.stimuli] == [5, 3]
    older = {item.code for item in before.diagnostics}
    assert {
        "bare-duration", "deprecated-grader-name", "deprecated-key", "deprecated-turn-mapping", "duplicate-grader-name",
        "ignored-stimulus-field", "legacy-path-base", "mcp-type-missing", "rubric-item-not-string", "scalar-for-list",
    } <= older  # fmt: skip
    assert {item.level for item in before.diagnostics} == {"warning"}
    assert run(old, "migrate", "--check", ".").exit_code == 1

    result = run(old, "migrate", ".")
    assert (result.exit_code, result.stderr) == (0, "")
    after = load(old)
    assert after.diagnostics == ()
    assert plan(after.spec) == plan(before.spec)
    assert not (old / ".vally.yml").exists()
    assert run(old, "migrate", "--check", ".").exit_code == 0
    linted = run(old, "lint", "-e", "evals/old/eval.yaml", "--strict")
    assert linted.exit_code == 0, linted.stdout + linted.stderr


def test_comments_and_untouched_lines_stay(old: Path) -> None:
    run(old, "migrate", ".")
    text = (old / "evals/old/eval.yaml").read_text()
    for line in OLD_SPEC.splitlines():
        comment = line.partition("#")[2]
        assert comment in text
    assert "\n  - name: second\n    environment: base\n    prompt: hi\n    x-config: {runs: 1}\n" in text


def test_the_examples_need_no_migration(tmp_path: Path) -> None:
    result = run_cli(["migrate", "--check", "."], cwd=ROOT / "examples")
    assert result.exit_code == 0, result.stdout
