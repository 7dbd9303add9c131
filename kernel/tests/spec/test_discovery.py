from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from vally.spec import discover_evals, expand_spec_words, suite_files


def relative(work: Any, paths: list[Path]) -> list[str]:
    return [path.relative_to(work.root).as_posix() for path in paths]


def discovered(work: Any, text: str = "") -> tuple[list[str], list[str]]:
    paths, diagnostics = discover_evals(work.project(text))
    return relative(work, paths), [
        f"{item.line}:{item.column} {item.code.upper() if item.level == 'error' else item.code}" for item in diagnostics
    ]


def touch(work: Any, *names: str) -> None:
    for name in names:
        work.write(name, "stimuli: []\n")


@pytest.mark.parametrize(
    ("pattern", "matches", "others"),
    [
        pytest.param(
            "tests/*/!(agent.*)/eval.yaml",
            ["tests/a/b/eval.yaml"],
            ["tests/a/agent.x/eval.yaml", "tests/a/b/c/eval.yaml"],
            id="GL-1",
        ),
        pytest.param(
            "tools/**/*.eval.yaml",
            ["tools/a/b/x.eval.yaml", "tools/x.eval.yaml"],
            ["tools/eval.yaml", "tools/node_modules/x.eval.yaml", "tools/.hidden/x.eval.yaml", "tools/.x.eval.yaml"],
            id="GL-2",
        ),
        pytest.param("evals/{a,b}/", ["evals/a/eval.yaml", "evals/b/deep/eval.yml"], ["evals/c/eval.yaml"], id="GL-3"),
        pytest.param(".work/*/", [".work/a/eval.yaml"], [".work/.hidden/eval.yaml"], id="GL-4"),
    ],
)
def test_globs(work: Any, pattern: str, matches: list[str], others: list[str]) -> None:
    touch(work, *matches, *others)
    found, diagnostics = discovered(work, f"paths: {{evals: '{pattern}'}}\n")
    assert (found, diagnostics) == (matches, [])


def test_a_directory_pattern_takes_no_file(work: Any) -> None:
    touch(work, "evals/a", "evals/b/eval.yaml")
    assert discovered(work, "paths: {evals: 'evals/{a,b}/'}\n")[0] == ["evals/b/eval.yaml"]


def test_directories_are_searched(work: Any) -> None:
    touch(work, "evals/eval.yaml", "evals/a/eval.yml", "evals/a/b/eval.yaml", "evals/other.yaml", "evals/.h/eval.yaml")
    for skipped in (".git", "node_modules", ".venv", "venv", "__pycache__", ".tox"):
        touch(work, f"evals/{skipped}/eval.yaml")
    touch(work, "evals/run/eval.yaml", "evals/run/deep/eval.yaml", "evals/run/results.jsonl")
    found = ["evals/.h/eval.yaml", "evals/a/b/eval.yaml", "evals/a/eval.yml", "evals/eval.yaml"]
    assert discovered(work) == (found, [])


def test_file_names(work: Any) -> None:
    touch(work, "evals/eval.yaml", "evals/x.eval.yaml", "evals/y.test.yml", "evals/z.yaml")
    text = "paths: {evalFilenames: ['*.eval.yaml', '[xy].{test,spec}.y?l']}\n"
    assert discovered(work, text)[0] == ["evals/x.eval.yaml", "evals/y.test.yml"]


def test_entries_that_name_nothing(work: Any) -> None:
    touch(work, "one.yaml")
    assert discovered(work) == ([], [])
    assert discovered(work, "paths: {evals: [one.yaml, none]}\n") == (
        ["one.yaml"],
        ["1:27 DISCOVERY-PATH-NOT-FOUND"],
    )
    assert discovered(work, "paths: {evals: none}\n") == ([], ["1:16 DISCOVERY-PATH-NOT-FOUND"])
    assert discovered(work, "paths:\n  evals: ['none/*']\n") == ([], ["2:11 pattern-matched-nothing"])


def test_links_to_directories_are_not_entered(work: Any) -> None:
    touch(work, "evals/a/eval.yaml")
    (work.root / "evals/loop").symlink_to(work.root / "evals")
    assert discovered(work)[0] == ["evals/a/eval.yaml"]


def suite(work: Any, text: str, *, lint: bool = False) -> tuple[list[str], list[str]]:
    project = work.project(f"suites:\n  s: {text}\n")
    paths, diagnostics = suite_files(project, project.suites["s"], lint=lint)
    return relative(work, paths), [
        f"{item.line}:{item.column} {item.code.upper() if item.level == 'error' else item.code}" for item in diagnostics
    ]


def test_suites(work: Any) -> None:
    touch(work, "evals/a/eval.yaml", "other/eval.yaml", "other/deep/eval.yaml", "single.yaml")
    assert suite(work, "{filter: {}}") == (["evals/a/eval.yaml"], [])
    assert suite(work, "{evals: [single.yaml, other]}") == (
        ["other/deep/eval.yaml", "other/eval.yaml", "single.yaml"],
        [],
    )
    assert suite(work, "{evals: ['other/*/eval.yaml', none]}") == (
        ["other/deep/eval.yaml"],
        ["2:36 pattern-matched-nothing"],
    )
    assert suite(work, "{evals: ['none/*']}") == ([], ["2:15 pattern-matched-nothing", "2:6 SUITE-MATCHED-NOTHING"])
    assert suite(work, "{evals: none}", lint=True)[1] == [
        "2:14 pattern-matched-nothing",
        "2:6 suite-matched-nothing",
    ]


def words(work: Any, *given: str, text: str = "") -> tuple[list[str], list[str]]:
    paths, diagnostics = expand_spec_words(given, work.root, work.project(text))
    return relative(work, paths), [f"{item.code}: {item.message}" for item in diagnostics]


def test_spec_words(work: Any) -> None:
    touch(work, "any-name.yaml", "d/eval.yaml", "d/x.eval.yml", "d/own.yaml", "empty/readme.yaml")
    assert words(work, "any-name.yaml", "d") == (["any-name.yaml", "d/eval.yaml", "d/x.eval.yml"], [])
    assert words(work, "d", text="paths: {evalFilenames: own.yaml}\n")[0] == ["d/own.yaml", "d/x.eval.yml"]
    assert words(work, "d/*.yaml")[0] == ["d/eval.yaml", "d/own.yaml"]
    assert words(work, "d/eval.yaml", "./d/eval.yaml") == (
        ["d/eval.yaml"],
        ["spec-named-twice: d/eval.yaml is named twice and runs once"],
    )
    assert words(work, "none.yaml", "empty", "e*.yaml") == (
        [],
        [
            "file-not-found: cannot read none.yaml: no such file or directory",
            "file-not-found: cannot read empty: it holds no eval spec",
            "file-not-found: cannot read e*.yaml: it matches no eval spec",
        ],
    )
    assert words(work, "[a")[1] == ["invalid-glob: '[a' is not a valid pattern: no ']' for '[' within the path segment"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_named_pipe_is_no_spec(work: Any) -> None:
    touch(work, "eval.yaml")
    os.mkfifo(work.root / "pipe")
    assert words(work, "pipe")[1] == ["file-not-found: cannot read pipe: it is neither a file nor a directory"]


def test_a_file_whose_name_looks_like_a_glob(work: Any) -> None:
    touch(work, "[id]/eval.yaml")
    assert words(work, "[id]/eval.yaml")[0] == ["[id]/eval.yaml"]


def test_a_wildcard_stands_for_no_directory_that_is_skipped(work: Any) -> None:
    for directory in ("a", "node_modules", "run"):
        work.write(f"evals/{directory}/eval.yaml")
    work.write("evals/run/results.jsonl")
    found, _ = discover_evals(work.project("paths: {evals: ['evals/*/', evals/node_modules]}\n"))
    assert [path.relative_to(work.root).as_posix() for path in found] == [
        "evals/a/eval.yaml",
        "evals/node_modules/eval.yaml",
    ]
    found, _ = discover_evals(work.project("paths: {evals: ['evals/*/']}\n"))
    assert [path.relative_to(work.root).as_posix() for path in found] == ["evals/a/eval.yaml"]
