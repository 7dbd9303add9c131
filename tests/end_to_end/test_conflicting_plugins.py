"""A distribution that provides names which come with vally: whoever uses one is told both, and how to leave one out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from plugin_sites import Site

from vally.testing import CliResult, ProjectBuilder, run_cli

MODULE = """\
from vally import BackendSpec, CommandSpec, ExecutorSpec, GraderSpec, JudgeSpec, hookimpl
vally_api = 1
@hookimpl
def vally_graders():
    yield GraderSpec(name="completed", summary="s", factory=dict)
    yield GraderSpec(name="turn-count", summary="s", factory=dict, constraints={"max_turns": "max"})
@hookimpl
def vally_executors():
    yield ExecutorSpec(name="mock", summary="s", factory=dict)
@hookimpl
def vally_backends():
    yield BackendSpec(name="local", summary="s", factory=dict)
@hookimpl
def vally_commands():
    yield CommandSpec(name="lint", summary="s", factory=dict)
"""

ENTRY = {"graders": [{"type": "completed"}]}
LIMIT = {"constraints": {"max_turns": 3}, "graders": [{"type": "output-contains", "config": {"substring": "hi"}}]}
PLAIN = {"graders": [{"type": "output-contains", "config": {"substring": "hi"}}]}
EVAL = ["eval", "-e", "evals/a/eval.yaml"]
USES = {
    "grader": ("grader", "completed", "vally-grader-completion", ENTRY, EVAL),
    "grade": ("grader", "completed", "vally-grader-completion", ENTRY, ["grade", "-e", "evals/a/eval.yaml"]),
    "constraint": ("grader", "turn-count", "vally-grader-metrics", LIMIT, EVAL),
    "executor": ("executor", "mock", "vally-executor-mock", PLAIN, EVAL),
    "backend": ("backend", "local", "vally-backend-local", PLAIN, EVAL),
    "command": ("command", "lint", "vally-command-lint", PLAIN, ["lint", "-e", "evals/a/eval.yaml"]),
}


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    return ProjectBuilder(tmp_path / "project")


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    site = Site(tmp_path / "site")
    site.path.mkdir()
    monkeypatch.syspath_prepend(str(site.path))

    def only(kind: str) -> None:
        site.distribution(
            "clash", "0.3", groups={f"vally.{kind}s": {"clash": "clash_plugin"}}, files={"clash_plugin.py": MODULE}
        )

    yield only
    sys.modules.pop("clash_plugin", None)


def run(project: ProjectBuilder, stimulus: dict[str, object], *words: str) -> CliResult:
    project.eval("a", [{"name": "s", "prompt": "hi", **stimulus}], defaults={"executor": "mock"})
    result = run_cli([*words], cwd=project.root)
    assert "Traceback" not in result.stdout + result.stderr
    return result


@pytest.mark.parametrize("case", USES)
def test_who_uses_the_name_is_told_both_and_what_to_do(
    project: ProjectBuilder, install: Callable[[str], None], case: str
) -> None:
    kind, name, built_in, stimulus, words = USES[case]
    install(kind)
    result = run(project, stimulus, *words)
    assert (result.exit_code, result.run_dir) == (2 if kind == "command" else 1, None)
    told = result.stderr.replace("\n", " ")
    assert f"{kind} '{name}' is provided by clash 0.3 and {built_in} " in told
    hints = [line.strip() for line in result.stderr.splitlines() if line.startswith("  ")]
    told_to = f"leave one out with --no-plugin clash or --no-plugin {built_in}"
    assert any(hint.endswith(told_to) for hint in hints)


@pytest.mark.parametrize("case", USES)
def test_leaving_one_out_settles_it(project: ProjectBuilder, install: Callable[[str], None], case: str) -> None:
    kind, _, _, stimulus, words = USES[case]
    install(kind)
    if case == "grade":
        project.file("in.jsonl", json.dumps({"trajectory": {"stimulus": {"name": "s"}, "output": "hi", "events": []}}))
        words = [*words, "in.jsonl"]
    result = run(project, stimulus, *words, "--no-plugin", "clash")
    assert result.exit_code == 0
    assert "clash" not in result.stderr


@pytest.mark.parametrize(
    ("name", "owner", "words"),
    [
        ("runs", "vally-command-inspect-runs", ["runs"]),
        ("experiment", "vally-command-experiment", ["experiment", "merge", "nowhere", "-o", "out"]),
        ("schema", "vally-command-scaffold", ["schema"]),
    ],
)
@pytest.mark.parametrize("choice", [["--no-plugin", "other"], ["--no-plugin=other"], ["--no-plugins"]], ids=" ".join)
def test_it_is_settled_for_commands_without_plugins_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, owner: str, words: list[str], choice: list[str]
) -> None:
    site = Site(tmp_path / "site")
    site.path.mkdir()
    monkeypatch.syspath_prepend(str(site.path))
    text = f"""
from vally import CommandSpec, hookimpl
vally_api = 1
@hookimpl
def vally_commands():
    yield CommandSpec(name="{name}", summary="s", factory=dict)
"""
    groups = {"vally.commands": {"other": "other_plugin"}}
    site.distribution("other", "0.3", groups=groups, files={"other_plugin.py": text})
    try:
        refused = run_cli(words, cwd=tmp_path)
        assert refused.exit_code == 2
        assert f"leave one out with --no-plugin other or --no-plugin {owner}" in refused.stderr
        settled = run_cli([*words, *choice], cwd=tmp_path)
        plain = run_cli([*words, "--no-plugin"], cwd=tmp_path)
    finally:
        sys.modules.pop("other_plugin", None)
    assert "no such option" not in settled.stderr
    assert "is provided by" not in settled.stderr
    assert settled.exit_code == (1 if name == "experiment" else 0), settled.stderr
    assert plain.exit_code == 2


@pytest.mark.parametrize("kind", ["executor", "backend"])
def test_the_doctor_says_with_whom_and_what_to_do(
    project: ProjectBuilder, install: Callable[[str], None], kind: str
) -> None:
    _, name, built_in, _, _ = USES[kind]
    install(kind)
    left_out = ["vally-executor-copilot-sdk", "vally-judge-copilot", "vally-judge-tiny", "vally-backend-ray"]
    options = [word for each in left_out for word in ("--no-plugin", each)]
    result = run_cli(["doctor", "--output", "json", *options], cwd=project.root)
    parts = [part for part in json.loads(result.stdout)["parts"] if part["name"] == name]
    assert sorted(part["detail"] for part in parts) == ["conflicts with built in", "conflicts with clash 0.3"]
    assert all(part["hints"] == [f"leave one out with --no-plugin clash or --no-plugin {built_in}"] for part in parts)
