from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally import Project, SpecError, find_project, load_project, read_project
from vally.spec.environments import NamedEnvironment


def findings(project: Project) -> list[str]:
    return [
        f"{item.line}:{item.column} {item.code.upper() if item.level == 'error' else item.code}"
        for item in project.diagnostics
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("# nothing\n", []),
        ("[a]", ["1:1 INVALID-TYPE"]),
        ("paths: {skills: s, evals: [a, 'b/*'], results: r, evalFilenames: '*.eval.yaml'}", []),
        ("paths: {skils: s}", ["1:9 UNKNOWN-KEY"]),
        ("paths: {x-note: s}", []),
        ("paths: {evals: ['[']}", ["1:17 INVALID-GLOB"]),
        ("paths: {evalFilenames: ['[']}", ["1:25 INVALID-GLOB"]),
        ("paths: {evals: 5}", ["1:16 INVALID-TYPE"]),
        ("paths: {results: [r]}", ["1:18 INVALID-TYPE"]),
        ("path: {}", ["1:1 foreign-key"]),
        ("path: {}\nother: 1\nx-own: 1", ["1:1 foreign-key"]),
        ("environments: {e: {}}", []),
        ("environments: {e: {git: {type: wortree}}}", ["1:32 INVALID-VALUE"]),
        ("environments: {e: {files: [{src: f}]}}", ["1:28 ENVIRONMENT-FILE-MISSING-FIELD"]),
        ("environments: {e: {files: [{src: f, dest: ../x}]}}", ["1:43 ENVIRONMENT-FILE-BAD-DEST"]),
        ("environments: {e: {mcpServers: {m: {type: http}}}}", ["1:36 MISSING-KEY"]),
        ("environments: {e: {skils: [s]}}", ["1:20 UNKNOWN-KEY"]),
        ("environments: {e: {env: {VALLY_X: y}}}", ["1:26 RESERVED-ENV-NAME"]),
        ("environments: {e: {skills: [missing], files: [{src: missing, dest: f}]}}", []),
        ("environments: {e: {git: {type: worktree, source: '${S}'}, commandTimeout: '${T}'}}", []),
        ("environments: {e: [x]}", ["1:19 INVALID-TYPE"]),
        ("environments: [e]", ["1:15 INVALID-TYPE"]),
        ("suites: {s: {}}", ["1:13 SUITE-EMPTY"]),
        ("suites: {s: {filter: {}}}", []),
        ("suites: {s: {evals: e, description: d, metadata: {a: 1}}}", []),
        ("suites: {s: {filter: {a: b}, tags: x}}", ["1:30 UNKNOWN-KEY"]),
        ("suites: {s: {filter: [a]}}", ["1:22 INVALID-TYPE"]),
        ("suites: {s: {evals: ['{a']}}", []),
        ("suites: {s: x}", ["1:13 INVALID-TYPE"]),
        ("metadata: {a: [1]}", []),
        ("metadata: x", ["1:11 INVALID-TYPE"]),
        ("plugins: {graders: [a, ./b.py], judges: c, exporters: [d]}", []),
        ("plugins: {grader: [a]}", ["1:11 UNKNOWN-KEY"]),
        ("plugins: {graders: [1]}", ["1:21 INVALID-TYPE"]),
        ("backend: docker", []),
        ("backend: {name: docker, args: {image: x, mounts: [a, b]}}", []),
        ("backend: {args: {}}", ["1:10 MISSING-KEY"]),
        ("backend: {name: docker, arg: {}}", ["1:25 UNKNOWN-KEY"]),
        ("backend: {name: docker, args: {n: 5}}", ["1:35 INVALID-TYPE"]),
        ("backend: {name: docker, args: [n]}", ["1:31 INVALID-TYPE"]),
        ("backend: ''", ["1:10 INVALID-VALUE"]),
        ("backend: 5", ["1:10 INVALID-TYPE"]),
        ("backend: [podman]", ["1:10 INVALID-TYPE"]),
        ("evalProvider: p", []),
        ("evalProvider: [p]", ["1:15 INVALID-TYPE"]),
        ("a: 1\na: 2", ["2:1 DUPLICATE-KEY"]),
    ],
)
def test_findings(work: Any, text: str, expected: list[str]) -> None:
    assert findings(work.project(text)) == expected


def test_unknown_keys_are_one_warning(work: Any) -> None:
    (item,) = work.project("suits: {}\nwhatever: 1\n").diagnostics
    assert item.message == "unknown key 'suits', 'whatever' is ignored"
    assert item.hint == "did you mean 'suites'?"


def test_values(work: Any) -> None:
    project = work.project(
        "paths: {skills: [a, b], evals: e, results: r, evalFilenames: ['*.yaml']}\n"
        "environments: {e: {env: {A: '1'}}}\n"
        "suites:\n  s: {description: d, filter: {a: [x, y], b: z}, evals: [e1, e2], metadata: {m: 1}}\n"
        "metadata: {k: v}\n"
        "plugins: {graders: [g, g, h], evalProviders: p}\n"
        "backend: {name: b, args: {x: y, z: [w]}}\n"
        "evalProvider: ep\n"
    )
    assert findings(project) == []
    assert project.root == work.root
    assert project.path == work.root / ".vally.yaml"
    assert (project.skills, project.evals, project.results) == (("a", "b"), ("e",), "r")
    assert project.eval_filenames == ("*.yaml",)
    assert isinstance(project.environments["e"], NamedEnvironment)
    suite = project.suites["s"]
    assert (suite.filter, suite.evals) == ({"a": ("x", "y"), "b": ("z",)}, ("e1", "e2"))
    assert (suite.description, suite.metadata) == ("d", {"m": 1})
    assert project.metadata == {"k": "v"}
    assert project.plugins == {"graders": ("g", "h"), "evalProviders": ("p",)}
    assert (project.backend, project.backend_args) == ("b", {"x": "y", "z": ["w"]})
    assert project.eval_provider == "ep"
    assert project.positions["/suites/s/evals/1"].column == 62


def test_defaults(work: Any) -> None:
    project = work.project("")
    assert (project.skills, project.evals, project.results) == (("skills/",), ("evals/",), None)
    assert project.eval_filenames == ("eval.yaml", "eval.yml")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("backend: 5", "name a backend, as in 'backend: sandbox'; its arguments go beside it: {name: …, args: {…}}"),
        ("backend: {name: b, args: {pids: 64}}", "write it in quotes: '64'"),
        ("backend: {name: b, args: {keep: true}}", "write it in quotes: 'true'"),
    ],
)
def test_hints_of_backends(work: Any, text: str, hint: str) -> None:
    (item,) = work.project(text).diagnostics
    assert (item.code, item.hint) == ("invalid-type", hint)


def test_an_unused_environment_is_checked(work: Any) -> None:
    # The seventh check of the chapter.
    path = work.write(".vally.yaml", "environments:\n  unused:\n    git: {type: wortree}\n")
    with pytest.raises(SpecError) as caught:
        load_project(path)
    (item,) = caught.value.diagnostics
    assert (item.code, item.line, item.column) == ("invalid-value", 3, 17)
    assert item.context == "environment 'unused'"
    assert load_project(work.write(".vally.yaml", "")).diagnostics == ()


def test_size(work: Any) -> None:
    text = "#" * 2**20
    assert findings(work.project(text)) == []
    assert [item.code for item in work.project(text + "#").diagnostics] == ["file-too-large"]


def test_a_missing_file(tmp_path: Path) -> None:
    (item,) = read_project(tmp_path / "none.yaml").diagnostics
    assert item.code == "file-not-found"


# Finding the file


def test_looking_upward(tmp_path: Path) -> None:
    root, deep = tmp_path / "repo", tmp_path / "repo/a/b"
    deep.mkdir(parents=True)
    (root / ".git").mkdir()
    (tmp_path / ".vally.yaml").write_text("backend: outside\n")
    assert find_project(deep, deep).path is None
    assert find_project(deep, deep).root == deep
    (root / ".vally.yaml").write_text("backend: top\n")
    assert find_project(deep, tmp_path).backend == "top"
    (root / "a/.vally.yml").write_text("backend: old\n")
    old = find_project(deep, tmp_path)
    assert old.backend == "old"
    assert [(item.code, item.level) for item in old.diagnostics] == [("deprecated-filename", "warning")]
    (root / "a/.vally.yaml").write_text("backend: new\n")
    assert find_project(deep, tmp_path).backend == "new"


def test_a_git_file_stops_the_search_too(tmp_path: Path) -> None:
    deep = tmp_path / "x/y"
    deep.mkdir(parents=True)
    (tmp_path / "x/.git").write_text("gitdir: elsewhere\n")
    (tmp_path / ".vally.yaml").write_text("backend: outside\n")
    assert find_project(deep, deep).path is None


def test_the_current_directory_comes_second(tmp_path: Path) -> None:
    for name in ("spec", "cwd/deep"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("spec", "cwd"):
        (tmp_path / name / ".git").mkdir()
    (tmp_path / "cwd/.vally.yaml").write_text("backend: cwd\n")
    assert find_project(tmp_path / "spec", tmp_path / "cwd/deep").backend == "cwd"
    (tmp_path / "spec/.vally.yaml").write_text("backend: spec\n")
    assert find_project(tmp_path / "spec", tmp_path / "cwd/deep").backend == "spec"


def test_a_named_file_and_none(tmp_path: Path) -> None:
    (tmp_path / ".vally.yaml").write_text("backend: found\n")
    (tmp_path / "other.yaml").write_text("backend: named\n")
    assert find_project(tmp_path, tmp_path, "other.yaml").backend == "named"
    assert find_project(tmp_path, tmp_path, no_config=True) == Project(root=tmp_path)
    assert [item.code for item in find_project(tmp_path, tmp_path, "none.yaml").diagnostics] == ["file-not-found"]
