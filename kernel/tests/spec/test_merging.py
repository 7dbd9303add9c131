from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally import merge_environments
from vally.model.evalspec import Environment, GitSource, McpServer, StagedFile

GRADED = "graders: [{type: completed}]"


def merged(work: Any, root: str, stimulus: str, **options: Any) -> Any:
    """The one stimulus of a spec with these root lines and stimulus keys."""
    keys = f", {stimulus}" if stimulus else ""
    return work(f"{root}\nstimuli:\n  - {{name: a, prompt: p, {GRADED}{keys}}}\n", **options).clean.stimuli[0]


@pytest.fixture
def skills(work: Any) -> Any:
    for name in "abc":
        work.skill(name)
    return work


@pytest.mark.parametrize(
    ("root", "stimulus", "expected"),
    [
        pytest.param("environment: {skills: [a, b]}", "environment: {skills: [b, c]}", ["a", "b", "c"], id="MG-1"),
        pytest.param("environment: {skills: [a]}", "environment: {skills: []}", [], id="MG-2"),
        pytest.param("environment: {skills: [a]}", "", ["a"], id="MG-3"),
        ("environment: {skills: [a]}", "environment: {skills: ~}", ["a"]),
        ("environment: {skills: []}", "environment: {skills: [c]}", ["c"]),
        ("environment: {}", "", None),
    ],
)
def test_skills(skills: Any, root: str, stimulus: str, expected: list[str] | None) -> None:
    found = merged(skills, root, stimulus).merged_environment.skills
    assert (None if found is None else [path.name for path in found]) == expected


def test_skills_are_united_by_real_path(skills: Any) -> None:
    (skills.root / "link").symlink_to("a")
    found = merged(skills, "environment: {skills: [a, b]}", "environment: {skills: [link, ./a/]}")
    assert found.merged_environment.skills == (skills.root / "a", skills.root / "b")


@pytest.mark.parametrize(
    ("root", "stimulus", "expected"),
    [
        pytest.param("commands: [x]", "commands: [y]", ("x", "y"), id="MG-4"),
        ("commands: [x]", "commands: []", ()),
        ("commands: [x]", "", ("x",)),
        ("commands: [x]", "commands: [x]", ("x", "x")),
    ],
)
def test_commands(work: Any, root: str, stimulus: str, expected: tuple[str, ...]) -> None:
    found = merged(work, f"environment: {{{root}}}", f"environment: {{{stimulus}}}")
    assert found.environment.commands == expected


@pytest.mark.parametrize(
    ("root", "stimulus", "expected"),
    [
        pytest.param('{A: "1", B: "2"}', '{B: ~, C: "3"}', {"A": "1", "C": "3"}, id="MG-5"),
        ('{A: "1"}', "~", {"A": "1"}),
        ('{A: "1"}', "{}", {"A": "1"}),
        ("{A: ~}", '{B: "1"}', {"B": "1"}),
    ],
)
def test_env(work: Any, root: str, stimulus: str, expected: dict[str, str]) -> None:
    found = merged(work, f"environment: {{env: {root}}}", f"environment: {{env: {stimulus}}}")
    assert found.environment.env == expected
    assert found.document["environment"].get("env", {}) == expected


@pytest.mark.parametrize((), [pytest.param(id="MG-6")])
def test_servers(work: Any) -> None:
    root = "environment: {mcpServers: {db: {type: stdio, command: d, timeout: 5s}, other: {type: stdio, command: o}}}"
    found = merged(work, root, "environment: {mcpServers: {db: {type: stdio, command: e}, other: ~}}").environment
    assert list(found.mcp_servers) == ["db"]
    assert found.mcp_servers["db"].command == "e"
    assert found.mcp_servers["db"].timeout_ms is None
    assert list(merged(work, root, "environment: {mcpServers: ~}").environment.mcp_servers) == ["db", "other"]


@pytest.mark.parametrize((), [pytest.param(id="MG-7")])
def test_git(work: Any) -> None:
    (work.root / ".git").mkdir()
    root = "environment: {git: {type: worktree, ref: v1, history: none}}"
    found = merged(work, root, "environment: {git: {type: worktree}}").environment.git
    assert found == GitSource(type="worktree", source=work.root)
    assert found.ref is None  # which is HEAD
    assert merged(work, root, "").environment.git.ref == "v1"


@pytest.mark.parametrize((), [pytest.param(id="MG-8")])
def test_a_named_environment(work: Any) -> None:
    work.write("f")
    work.write("g")
    work.project("environments:\n  base: {files: [{src: f, dest: f}]}\n")
    found = merged(work, "environment: base", "environment: {files: [{src: g, dest: g}]}")
    assert [item.dest for item in found.environment.files] == ["f", "g"]


@pytest.mark.parametrize((), [pytest.param(id="MG-9")])
def test_tags(work: Any) -> None:
    found = merged(work, "tags: {area: [a, b], kept: k}", "tags: {area: c}")
    assert found.tags == {"area": "c", "kept": "k"}
    assert merged(work, "tags: {area: a}", "tags: {area: []}").tags == {"area": "a"}


@pytest.mark.parametrize((), [pytest.param(id="MG-10")])
def test_the_order_of_four_layers(work: Any) -> None:
    for name in "fghi":
        work.write(name)
    found = merged(
        work,
        "environment: {files: [{src: f, dest: f}], env: {A: '1', B: '1'}}\n"
        "agent_environment: {files: [{src: g, dest: g}], env: {A: '2', B: ~, C: '2'}}",
        "environment: {files: [{src: h, dest: h}], env: {A: '3'}}, agent_environment: {files: [{src: i, dest: i}]}",
    )
    assert [item.dest for item in found.merged_environment.files] == ["f", "g", "h", "i"]
    assert found.merged_environment.env == {"A": "3", "C": "2"}
    # Set-up commands get the variables of `environment` only.
    assert found.environment.env == {"A": "3", "B": "1"}
    assert [item.dest for item in found.agent_environment.files] == ["g", "i"]


def test_the_timeout_of_commands(work: Any) -> None:
    found = merged(work, "environment: {commandTimeout: 5s}", "environment: {commandTimeout: 2m}").environment
    assert (found.command_timeout_ms, found.command_timeout_text) == (120_000, "2m")
    assert merged(work, "environment: {commandTimeout: 5s}", "").environment.command_timeout_ms == 5000
    assert merged(work, "name: n", "").environment.command_timeout_ms == 60_000


def test_grading_environments_merge_on_their_own(work: Any) -> None:
    found = merged(
        work,
        "grading_environment: {commands: [a], env: {A: '1'}}",
        "grading_environment: {commands: [b], env: {B: '2'}}",
    )
    assert found.grading_environment.commands == ("a", "b")
    assert found.grading_environment.env == {"A": "1", "B": "2"}
    assert not found.merged_environment.commands


@pytest.mark.parametrize(
    ("root", "stimulus", "include", "exclude"),
    [
        ("{include: [a]}", "{include: [b, a], exclude: [c]}", ("a", "b"), ("c",)),
        ("{include: [a], exclude: [c]}", "{exclude: []}", ("a",), ()),
        ("{include: a}", "~", ("a",), ()),
    ],
)
def test_artifacts(work: Any, root: str, stimulus: str, include: Any, exclude: Any) -> None:
    text = f"artifacts: {root}\nstimuli:\n  - {{name: a, prompt: p, {GRADED}, artifacts: {stimulus}}}\n"
    found = work(text).stimulus.artifacts
    assert (found.include, found.exclude) == (include, exclude)


def test_root_graders_come_first_and_constraints_last(work: Any) -> None:
    found = merged(work, "graders: [{type: diff-empty}]", "constraints: {max_turns: 3, expect_tools: [t]}")
    assert [(entry.type, entry.constraint, entry.required) for entry in found.graders] == [
        ("diff-empty", None, False),
        ("completed", None, False),
        ("turn-count", "max_turns", True),
        ("tool-calls", "expect_tools", True),
    ]


SERVER = McpServer(name="s", type="stdio", command="c")


@pytest.mark.parametrize(
    ("base", "over", "expected"),
    [
        (
            Environment(skills=(Path("/a"),), commands=("x",), env={"A": "1"}),
            Environment(skills=(Path("/b"), Path("/a")), commands=("y",), env={"A": "2"}),
            Environment(skills=(Path("/a"), Path("/b")), commands=("x", "y"), env={"A": "2"}),
        ),
        (Environment(skills=(Path("/a"),)), Environment(skills=()), Environment(skills=())),
        (Environment(skills=(Path("/a"),)), Environment(), Environment(skills=(Path("/a"),))),
        (Environment(), Environment(), Environment()),
        (
            Environment(command_timeout_ms=5, command_timeout_text="5ms", git=GitSource(type="clone", url="u")),
            Environment(mcp_servers={"s": SERVER}, files=(StagedFile(src=Path("/f"), dest="f"),)),
            Environment(
                command_timeout_ms=5,
                command_timeout_text="5ms",
                git=GitSource(type="clone", url="u"),
                mcp_servers={"s": SERVER},
                files=(StagedFile(src=Path("/f"), dest="f"),),
            ),
        ),
    ],
)
def test_merge_environments(base: Environment, over: Environment, expected: Environment) -> None:
    assert merge_environments(base, over) == expected
