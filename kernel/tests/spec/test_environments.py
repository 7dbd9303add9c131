from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally.model.evalspec import GitSource, McpServer, StagedFile

GRADED = "graders: [{type: completed}]"


def environment(work: Any, text: str, key: str = "environment", **options: Any) -> Any:
    """Load a spec with this environment in line 3, its text starting at column `len(key) + 3`."""
    return work(f"stimuli:\n  - {{name: a, prompt: p, {GRADED}}}\n{key}: {text}\n", **options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{skils: [a]}", ["3:15 UNKNOWN-KEY"]),
        ("{x-note: 1}", []),
        ("[a]", ["3:14 INVALID-TYPE"]),
        ("5", ["3:14 INVALID-TYPE"]),
        ("''", ["3:14 INVALID-TYPE"]),
        ("nowhere", ["3:14 UNKNOWN-ENVIRONMENT"]),
        ("{skills: 5}", ["3:23 INVALID-TYPE"]),
        ("{skills: [5]}", ["3:24 INVALID-TYPE"]),
        ("{skills: [nowhere]}", ["3:24 SKILL-NOT-FOUND"]),
        ("{skills: nowhere}", ["3:23 scalar-for-list", "3:23 SKILL-NOT-FOUND"]),
        ("{skills: ['no*']}", ["3:24 SKILL-NOT-FOUND"]),
        ("{skills: ['[a']}", ["3:24 INVALID-GLOB"]),
        ("{commands: make}", ["3:25 scalar-for-list"]),
        ("{commands: [' ']}", ["3:26 INVALID-VALUE"]),
        ("{commandTimeout: 0s}", ["3:31 INVALID-DURATION"]),
        ("{commandTimeout: 5}", ["3:31 bare-duration"]),
        ("{commandTimeout: [5]}", ["3:31 INVALID-TYPE"]),
        ("{env: {A: 1, B: true, C: [x]}}", ["3:24 coerced-scalar", "3:30 coerced-scalar", "3:39 INVALID-TYPE"]),
        ("{env: {a-b: x}}", ["3:21 INVALID-VALUE"]),
        ("{env: {evaluate_seed: x}}", ["3:21 RESERVED-ENV-NAME"]),
        ("{env: {EVALUATE_WORKSPACE: x}}", ["3:21 RESERVED-ENV-NAME"]),
        ("{env: {Evaluate_Grader_Input: x}}", ["3:21 RESERVED-ENV-NAME"]),
        ("{env: {EVALUATE_ASSETS: x}}", ["3:21 RESERVED-ENV-NAME"]),
        ("{env: {vally_x: x}}", ["3:21 RESERVED-ENV-NAME"]),
        ("{env: {VALLYX: x, EVALUATE: x}}", []),
        ("{env: [a]}", ["3:20 INVALID-TYPE"]),
    ],
)
def test_findings(work: Any, text: str, expected: list[str]) -> None:
    assert environment(work, text).found == expected
    # The same environment of the agent, one key further right.
    shifted = [f"3:{int(item.split()[0][2:]) + 6} {item.split()[1]}" for item in expected]
    assert environment(work, text, "agent_environment").found == shifted


@pytest.mark.parametrize("key", ["skills", "git", "mcpServers"])
def test_the_grading_environment_has_fewer_keys(work: Any, key: str) -> None:
    assert environment(work, f"{{{key}: x}}", "grading_environment").found == ["3:23 UNKNOWN-KEY"]
    work.skill("s")
    work.project("environments: {e: {skills: [s], commands: [make]}}\n")
    assert environment(work, "e", "grading_environment").found == ["3:22 UNKNOWN-KEY"]


def test_unknown_environments_have_hints(work: Any) -> None:
    work.project("environments: {linux: {}, windows: {}}\n")
    item = environment(work, "linx").only("unknown-environment")
    assert item.message == "no environment named 'linx' in .vally.yaml"
    assert item.hint == "did you mean 'linux'?; environments: linux, windows"


# Skills


def test_skill_entries(work: Any) -> None:
    for name in ("s/a", "s/b", "s/deep/c", "here"):
        work.skill(name)
    work.write("s/no/README.md")
    for written, expected in (
        ("[s/a]", ["s/a"]),
        ("[s/a/, s/b/SKILL.md]", ["s/a", "s/b"]),
        ("['s/*']", ["s/a", "s/b"]),
        ("['s/**/']", ["s/a", "s/b", "s/deep/c"]),
        ("['s/{b,a}']", ["s/a", "s/b"]),
        ("[s/a/../b]", ["s/b"]),
    ):
        skills = environment(work, f"{{skills: {written}}}").clean.stimuli[0].environment.skills
        assert [path.relative_to(work.root).as_posix() for path in skills] == expected
    nested = environment(work, "{skills: [..]}", name="here/evals/eval.yaml").clean
    assert nested.stimuli[0].environment.skills == (work.root / "here",)


def test_skills_of_one_name_collide(work: Any) -> None:
    work.skill("x/s")
    work.skill("y/s")
    found = environment(work, "{skills: [x/s, y/s]}")
    assert found.found == ["3:29 SKILL-NAME-COLLISION"]
    item = found.diagnostics[0]
    assert item.message == "two skills are named 's': x/s, y/s"
    assert [(note.line, note.column) for note in item.related] == [(3, 24)]


def test_a_collision_after_merging_stands_at_the_stimulus(work: Any) -> None:
    work.skill("x/s")
    work.skill("y/s")
    text = (
        "environment: {skills: [x/s]}\nstimuli:\n"
        f"  - {{name: a, prompt: p, {GRADED}, environment: {{skills: [y/s]}}}}\n"
        f"  - {{name: b, prompt: p, {GRADED}}}\n"
    )
    assert work(text).found == ["3:79 SKILL-NAME-COLLISION"]


# Files


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("f", ["3:23 ENVIRONMENT-FILE-MISSING-FIELD"]),
        ("{src: f}", ["3:23 ENVIRONMENT-FILE-MISSING-FIELD"]),
        ("{dest: f}", ["3:23 ENVIRONMENT-FILE-MISSING-FIELD"]),
        ("{}", ["3:23 ENVIRONMENT-FILE-MISSING-FIELD", "3:23 ENVIRONMENT-FILE-MISSING-FIELD"]),
        ("{src: f, dest: ~}", ["3:23 ENVIRONMENT-FILE-MISSING-FIELD"]),
        ("{src: none, dest: f}", ["3:29 ENVIRONMENT-FILE-NOT-FOUND"]),
        ("{src: f, dest: /abs}", ["3:38 ENVIRONMENT-FILE-BAD-DEST"]),
        ("{src: f, dest: 'C:/x'}", ["3:38 ENVIRONMENT-FILE-BAD-DEST"]),
        ("{src: f, dest: ../x}", ["3:38 ENVIRONMENT-FILE-BAD-DEST"]),
        ("{src: f, dest: a/../../x}", ["3:38 ENVIRONMENT-FILE-BAD-DEST"]),
        ("{src: f, dest: .git}", ["3:38 ENVIRONMENT-FILE-BAD-DEST"]),
        ("{src: f, dest: x/../.git/hooks}", ["3:38 ENVIRONMENT-FILE-BAD-DEST"]),
        ("{src: f, dest: '..\\x'}", ["3:38 backslash-path", "3:38 ENVIRONMENT-FILE-BAD-DEST"]),
        ("{src: f, dest: 'a\\b'}", ["3:38 backslash-path"]),
        ("{src: f, dest: f, dest_root: root}", ["3:52 INVALID-VALUE"]),
        ("{src: f, dest: f, mode: x}", ["3:41 UNKNOWN-KEY"]),
        ("{src: 5, dest: f}", ["3:29 INVALID-TYPE"]),
        ("{src: '', dest: f}", ["3:29 INVALID-VALUE"]),
        ("{src: '\\0', dest: f}", ["3:29 ENVIRONMENT-FILE-NOT-FOUND"]),
        ('{src: "\\0", dest: f}', ["3:29 ENVIRONMENT-FILE-NOT-FOUND"]),
        ("{src: ., dest: f}", ["3:29 environment-file-exposes-spec"]),
        ("{src: eval.yaml, dest: f}", ["3:29 environment-file-exposes-spec"]),
    ],
)
def test_files(work: Any, item: str, expected: list[str]) -> None:
    work.write("f")
    assert environment(work, f"{{files: [{item}]}}").found == expected


def test_messages_about_files(work: Any) -> None:
    found = environment(work, "{files: [{src: none, dest: f}, f, {src: none, dest: ../x}, {src: f}]}")
    assert [item.message for item in found.diagnostics] == [
        "environment.files[0]: none does not exist",
        "environment.files[1]: src is required",
        "environment.files[2]: dest '../x' must stay inside the workspace and outside .git",
        "environment.files[3]: dest is required",
    ]
    assert found.only("environment-file-not-found").pointer == "/environment/files/0/src"


def test_destinations(work: Any) -> None:
    work.write("d/f")
    items = "{src: d, dest: ./a//b/../c}, {src: d/f, dest: x/}, {src: d/f, dest: ., dest_root: assets}"
    found = environment(work, f"{{files: [{items}]}}")
    base = work.root / "d"
    assert found.clean.stimuli[0].environment.files == (
        StagedFile(src=base, dest="a/c"),
        StagedFile(src=base / "f", dest="x", keep_name=True),
        StagedFile(src=base / "f", dest=".", dest_root="assets", keep_name=True),
    )
    assert found.stimulus.document["environment"]["files"] == [
        {"src": str(base), "dest": "./a//b/../c"},
        {"src": str(base / "f"), "dest": "x/"},
        {"src": str(base / "f"), "dest": ".", "dest_root": "assets"},
    ]


# Git


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", ["3:20 MISSING-KEY"]),
        ("x", ["3:20 INVALID-TYPE"]),
        ("{type: wortree}", ["3:27 INVALID-VALUE"]),
        ("{type: worktree, url: x}", ["3:37 UNKNOWN-KEY"]),
        ("{type: worktree, shallow: true}", ["3:37 UNKNOWN-KEY"]),
        ("{type: worktree, sparse: [a]}", ["3:37 UNKNOWN-KEY"]),
        ("{type: worktree, source: /}", ["3:45 GIT-SOURCE-NOT-FOUND"]),
        ("{type: worktree, source: none}", ["3:45 GIT-SOURCE-NOT-FOUND"]),
        ("{type: worktree, history: some}", ["3:46 INVALID-VALUE"]),
        ("{type: worktree, history: all}", ["3:46 git-history-exposed"]),
        ("{type: clone}", ["3:20 MISSING-KEY"]),
        ("{type: clone, url: u, source: x}", ["3:42 UNKNOWN-KEY"]),
        ("{type: clone, url: u, shallow: yes}", ["3:51 INVALID-TYPE"]),
        ("{type: clone, url: 'https://user:pass@host/r.git'}", ["3:39 SECRET-IN-SPEC"]),
        ("{type: clone, url: 'https://token@host/r.git'}", ["3:39 SECRET-IN-SPEC"]),
        ("{type: clone, url: 'ssh://git:pw@host/r.git'}", ["3:39 SECRET-IN-SPEC"]),
        ("{type: clone, url: 'ssh://git@host/r.git'}", []),
        ("{type: clone, url: 'git@host:o/r.git'}", []),
        ("{type: clone, url: 'https://${T=x}@host/r.git'}", []),
        ("{type: clone, url: 'https://x-access-token:${T=x}@host/r.git'}", []),
        ("{type: clone, url: 'ssh://${U=x}:${T=x}@host/r.git'}", []),
        ("{type: clone, url: 'https://${eval.T=x}@host/r.git'}", []),
        ("{type: clone, url: 'https://x:${eval.T=x}@host/r.git'}", []),
        ("{type: clone, url: 'https://${U=x}:pass@host/r.git'}", ["3:39 SECRET-IN-SPEC"]),
        ("{type: clone, url: 'https://part${T=x}@host/r.git'}", ["3:39 SECRET-IN-SPEC"]),
        ("{type: clone, url: 'https://$${T}@host/r.git'}", ["3:39 SECRET-IN-SPEC"]),
        ("{type: clone, url: 'http://[bad'}", []),
        ("{type: clone, url: u, ref: v1, shallow: true, sparse: [a, b], history: none}", []),
    ],
)
def test_git(work: Any, text: str, expected: list[str]) -> None:
    (work.root / ".git").mkdir()
    found = [item for item in environment(work, f"{{git: {text}}}").found if item != "3:45 absolute-path"]
    assert found == expected


def test_git_values(work: Any) -> None:
    (work.root / ".git").write_text("gitdir: elsewhere\n")
    (work.root / "sub").mkdir()
    found = environment(work, "{git: {type: worktree, source: sub, ref: v1}}")
    assert found.clean.stimuli[0].environment.git == GitSource(type="worktree", source=work.root / "sub", ref="v1")
    assert found.stimulus.document["environment"]["git"] == {
        "type": "worktree",
        "source": str(work.root / "sub"),
        "ref": "v1",
    }
    assert environment(work, "{git: {type: worktree}}").clean.stimuli[0].environment.git.source == work.root
    clone = environment(work, "{git: {type: clone, url: u, sparse: [a]}}").clean.stimuli[0].environment.git
    assert clone == GitSource(type="clone", url="u", sparse=("a",))


def test_a_missing_repository_is_a_warning_in_lint(work: Any) -> None:
    found = environment(work, "{git: {type: worktree}}")
    assert found.found == ["3:20 GIT-SOURCE-NOT-FOUND"]
    assert found.diagnostics[0].message == ". is not inside a git repository"
    assert environment(work, "{git: {type: worktree}}", lint=True).found == ["3:20 git-source-not-found"]


# MCP servers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{type: stdio, command: c}", []),
        ("{command: c}", ["3:31 mcp-type-missing"]),
        ("{url: 'http://h'}", ["3:31 mcp-type-missing"]),
        ("{}", ["3:31 MISSING-KEY"]),
        ("x", ["3:31 INVALID-TYPE"]),
        ("{type: pipe, command: c}", ["3:38 INVALID-VALUE"]),
        ("{type: stdio}", ["3:31 MISSING-KEY"]),
        ("{type: stdio, command: c, url: 'http://h'}", ["3:57 UNKNOWN-KEY"]),
        ("{type: stdio, command: c, args: x}", ["3:63 INVALID-TYPE"]),
        ("{type: stdio, command: c, args: [1]}", ["3:64 INVALID-TYPE"]),
        ("{type: stdio, command: c, args: ['']}", []),
        ("{type: stdio, command: c, env: {A: 1}}", ["3:66 coerced-scalar"]),
        ("{type: stdio, command: c, env: {a-b: x}}", ["3:63 INVALID-VALUE"]),
        ("{type: stdio, command: c, timeout: 5}", ["3:66 bare-duration"]),
        ("{type: stdio, command: c, timeout: 5 s}", ["3:66 INVALID-DURATION"]),
        ("{type: http}", ["3:31 MISSING-KEY"]),
        ("{type: http, url: 'ftp://h'}", ["3:49 INVALID-VALUE"]),
        ("{type: http, url: 'http://'}", ["3:49 INVALID-VALUE"]),
        ("{type: http, url: 'http://u:p@h'}", ["3:49 SECRET-IN-SPEC"]),
        ("{type: http, url: 'http://h', command: c}", ["3:61 UNKNOWN-KEY"]),
        ("{type: http, url: 'http://h', headers: {A: 1}}", ["3:74 INVALID-TYPE"]),
        ("{type: sse, url: 'http://h', tools: [a]}", []),
        ("{type: http, url: 'http://h', tools: a}", ["3:68 INVALID-TYPE"]),
    ],
)
def test_servers(work: Any, text: str, expected: list[str]) -> None:
    assert environment(work, f"{{mcpServers: {{s: {text}}}}}").found == expected


def test_the_inferred_type_is_named(work: Any) -> None:
    item = environment(work, "{mcpServers: {s: {url: 'http://h'}}}").only("mcp-type-missing")
    assert item.message == "mcpServers.s: type is missing, read as 'http'"


def test_server_values(work: Any) -> None:
    text = "{type: stdio, command: ./run, args: [-x], env: {A: b}, cwd: sub, timeout: 5s, tools: [t]}"
    found = environment(work, f"{{mcpServers: {{s: {text}, r: {{type: sse, url: 'https://h/', headers: {{X: y}}}}}}}}")
    servers = found.clean.stimuli[0].environment.mcp_servers
    assert servers["s"] == McpServer(
        name="s",
        type="stdio",
        command="./run",
        args=("-x",),
        env={"A": "b"},
        cwd="sub",
        timeout_ms=5000,
        tools=("t",),
        base_dir=work.root,
    )
    assert servers["r"] == McpServer(name="r", type="sse", url="https://h/", headers={"X": "y"}, base_dir=work.root)
    assert found.stimulus.document["environment"]["mcpServers"] == {
        "s": {
            "type": "stdio",
            "command": "./run",
            "args": ["-x"],
            "env": {"A": "b"},
            "cwd": str(work.root / "sub"),
            "timeout": "5s",
            "tools": ["t"],
        },
        "r": {"type": "sse", "url": "https://h/", "headers": {"X": "y"}},
    }


# Bases of paths


def test_paths_of_named_environments(work: Any) -> None:
    work.write("f")
    work.write("evals/f", "nearer to the spec")
    work.write("evals/g")
    work.skill("evals/s")
    work.project(
        "environments:\n  e:\n    files: [{src: f, dest: f}, {src: g, dest: g}]\n    skills: [s, 'evals/*', 's*']\n"
        "    mcpServers: {m: {type: stdio, command: c}}\n"
    )
    found = environment(work, "e", name="evals/eval.yaml")
    assert found.found == ["3:38 legacy-path-base", "4:14 legacy-path-base", "4:28 legacy-path-base"]
    assert {item.file for item in found.diagnostics} == {".vally.yaml"}
    assert found.diagnostics[0].message == "'g' was found relative to the spec, not to .vally.yaml"
    loaded = found.stimulus.environment
    assert [item.src.relative_to(work.root).as_posix() for item in loaded.files] == ["f", "evals/g"]
    assert loaded.skills == (work.root / "evals/s",)
    assert loaded.mcp_servers["m"].base_dir == work.root


def test_a_missing_path_of_a_named_environment(work: Any) -> None:
    work.project("environments:\n  e:\n    files: [{src: none, dest: f}]\n")
    found = environment(work, "e")
    assert found.found == ["3:19 ENVIRONMENT-FILE-NOT-FOUND"]
    item = found.diagnostics[0]
    assert (item.file, item.pointer, item.context) == (".vally.yaml", "/environments/e/files/0/src", "environment 'e'")


def test_absolute_paths_in_a_committed_spec(work: Any) -> None:
    work.write("f")
    work.skill("s")
    text = f"{{files: [{{src: {work.root}/f, dest: f}}], skills: ['{work.root}/s', '{work.root}/?']}}"
    assert environment(work, text).found == []
    (work.root / ".git").mkdir()
    assert environment(work, text).codes == ["absolute-path"] * 3
    filled = environment(work, "{files: [{src: '${R}/f', dest: f}]}", environ={"R": str(work.root)})
    assert filled.found == []
    assert filled.spec.stimuli[0].environment.files[0].src == Path(work.root / "f")


def test_loading_changes_nothing_and_needs_no_git_program(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (work.root / ".git").mkdir()
    monkeypatch.setenv("PATH", "")
    before = sorted(work.root.rglob("*"))
    assert environment(work, "{git: {type: worktree}}").found == []
    assert sorted(work.root.rglob("*")) == sorted([*before, work.root / "eval.yaml"])
