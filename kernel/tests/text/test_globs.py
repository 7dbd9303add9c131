"""Both glob dialects: tables, file systems, and agreement with a naive matcher."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vally.text.globs import InvalidGlob, compile_glob, expand_glob

GL_ROWS = [
    ("GL-1", "tests/*/!(agent.*)/eval.yaml", "tests/a/b/eval.yaml", False, True),
    ("GL-1-not-agent", "tests/*/!(agent.*)/eval.yaml", "tests/a/agent.x/eval.yaml", False, False),
    ("GL-1-not-deeper", "tests/*/!(agent.*)/eval.yaml", "tests/a/b/c/eval.yaml", False, False),
    ("GL-2", "tools/**/*.eval.yaml", "tools/x.eval.yaml", False, True),
    ("GL-2-deep", "tools/**/*.eval.yaml", "tools/a/b/x.eval.yaml", False, True),
    ("GL-2-not", "tools/**/*.eval.yaml", "tools/eval.yaml", False, False),
    ("GL-3-a", "evals/{a,b}/", "evals/a", True, True),
    ("GL-3-b", "evals/{a,b}/", "evals/b", True, True),
    ("GL-3-file", "evals/{a,b}/", "evals/a", False, False),
    ("GL-4", ".work/*/", ".work/a", True, True),
    ("GL-4-hidden", ".work/*/", ".work/.hidden", True, False),
]


@pytest.mark.parametrize(
    ("pattern", "path", "is_dir", "matches"), [row[1:] for row in GL_ROWS], ids=[row[0] for row in GL_ROWS]
)
def test_project_table(pattern: str, path: str, is_dir: bool, matches: bool) -> None:
    assert compile_glob(pattern, dotfiles=False).match(path, is_dir) is matches


NAMES = [
    ("*", "a", True),
    ("*", "a/b", False),
    ("?", "é", True),
    ("?", "ab", False),
    ("[abc]", "b", True),
    ("[a-c]x", "bx", True),
    ("[!a-c]", "d", True),
    ("[^a-c]", "b", False),
    ("[]a]", "]", True),
    ("[!]a]", "]", False),
    ("[a-]", "-", True),
    ("[a\\]b]", "]", True),
    ("[\\!a]", "!", True),
    ("{a,b}c", "bc", True),
    ("{1..3}", "2", True),
    ("{1..3}", "4", False),
    ("{01..10}", "07", True),
    ("{a,{b,c}}", "c", True),
    ("{a}", "{a}", True),
    ("{a,b", "{a,b", True),
    ("\\{a,b\\}", "{a,b}", True),
    ("x{/y,}/z", "x/y/z", True),
    ("x{/y,}/z", "x/z", True),
    ("@(a|b)", "a", True),
    ("@(a|b)", "ab", False),
    ("?(a)b", "b", True),
    ("*(a|b)c", "abac", True),
    ("+(a)", "", False),
    ("+(ab)", "abab", True),
    ("!(a)", "b", True),
    ("!(a)", "a", False),
    ("!(a)b", "ab", False),
    ("!(a)b", "cb", True),
    ("!(a|b)*", "a", True),
    ("!(*.md)", "x.md", False),
    ("@(!(a)|a)", "a", True),
    ("*.@(yaml|yml)", "x.yml", True),
    ("@(a|+(b|c))d", "bcbd", True),
    ("!(@(a|b)c)", "bc", False),
    ("\\*", "*", True),
    ("\\*", "x", False),
    ("a\\[b", "a[b", True),
    ("(a)", "(a)", True),
    ("a|b", "a|b", True),
    ("**", "a/b/c", True),
    ("**/c", "c", True),
    ("**/c", "a/b/c", True),
    ("a/**/c", "a/c", True),
    ("a/**", "a/b/c", True),
    ("a/**", "ab", False),
    ("a**c", "abc", True),
    ("a**c", "a/c", False),
    ("**/**/a", "a", True),
    ("./a/./b", "a/b", True),
    ("a//b", "a/b", True),
    ("A", "a", False),
    ("[a-z]", "B", False),
]


@pytest.mark.parametrize(("pattern", "path", "matches"), NAMES)
def test_forms(pattern: str, path: str, matches: bool) -> None:
    assert compile_glob(pattern, dotfiles=True).match(path, False) is matches


@pytest.mark.parametrize(
    ("pattern", "path", "project", "workspace"),
    [
        ("*", ".a", False, True),
        ("?a", ".a", False, True),
        ("[.]a", ".a", False, True),
        ("@(.a|b)", ".a", False, True),
        (".*", ".a", True, True),
        ("\\.a", ".a", True, True),
        ("{.a,b}", ".a", True, True),
        ("!(b)", ".a", False, True),
        ("**/x", ".a/x", False, True),
        ("**/.a/x", "b/.a/x", True, True),
        ("*/x", ".git/x", False, False),
        ("**/x", "a/.git/x", False, False),
        (".git/x", ".git/x", True, True),
        ("**/.git/x", "a/.git/x", True, True),
        ("*/x", "node_modules/x", False, True),
        ("**/x", "node_modules/x", False, True),
        ("node_modules/*", "node_modules/x", True, True),
        ("*", "node_modules", True, True),
        ("*", ".git", False, True),
        ("*/x", "node_modules.x/x", True, True),
    ],
)
def test_dialects_differ_in_dots_and_skips(pattern: str, path: str, project: bool, workspace: bool) -> None:
    assert compile_glob(pattern, dotfiles=False).match(path, False) is project
    assert compile_glob(pattern, dotfiles=True).match(path, False) is workspace


@pytest.mark.parametrize("pattern", ["", "[a", "a/[b", "[b-a]", "@(a", "@(a/b)", "a\\", "x/!(", "{1..100000}", "[a/b]"])
def test_malformed(pattern: str) -> None:
    with pytest.raises(InvalidGlob) as caught:
        compile_glob(pattern, dotfiles=False)
    assert str(caught.value).startswith(f"'{pattern}' is not a valid glob: ")
    assert caught.value.reason


def make_tree(root: Path, *paths: str) -> None:
    for path in paths:
        target = root / path
        if path.endswith("/"):
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("")


def test_expansion_lists_files_and_directories_by_code_point(tmp_path: Path) -> None:
    make_tree(tmp_path, "b.md", "a.md", "B.md", "é.md", "x/a.md", ".hidden.md", "d.md/")
    assert expand_glob(tmp_path, "*.md", dotfiles=False) == ["B.md", "a.md", "b.md", "d.md", "é.md"]
    assert expand_glob(tmp_path, "*.md", dotfiles=True) == [".hidden.md", "B.md", "a.md", "b.md", "d.md", "é.md"]
    assert expand_glob(tmp_path, "*.md/", dotfiles=True) == ["d.md"]
    assert expand_glob(tmp_path, "{b,a}.md", dotfiles=True) == ["a.md", "b.md"]
    assert expand_glob(str(tmp_path), "x/**", dotfiles=True) == ["x", "x/a.md"]


def test_literal_paths_need_no_listing_and_may_leave_the_root(tmp_path: Path) -> None:
    make_tree(tmp_path, "in/a", "out/b")
    assert expand_glob(tmp_path / "in", "../out/*", dotfiles=False) == ["../out/b"]
    assert expand_glob(tmp_path / "in", f"{tmp_path.as_posix()}/o*/b", dotfiles=False) == [
        f"{tmp_path.as_posix()}/out/b"
    ]
    assert expand_glob(tmp_path / "in", "a/../a", dotfiles=False) == []
    assert expand_glob(tmp_path / "in", "missing", dotfiles=False) == []
    assert expand_glob(tmp_path / "in", "nul\0", dotfiles=False) == []
    assert expand_glob(tmp_path / "missing", "**", dotfiles=False) == []


if sys.platform != "win32":

    def test_any_depth_does_not_enter_links(tmp_path: Path) -> None:
        make_tree(tmp_path, "real/f")
        (tmp_path / "link").symlink_to("real", target_is_directory=True)
        (tmp_path / "real" / "up").symlink_to("..", target_is_directory=True)
        (tmp_path / "dangling").symlink_to("nowhere")
        (tmp_path / "loop").symlink_to("loop")
        assert expand_glob(tmp_path, "**/f", dotfiles=True) == ["real/f"]
        assert expand_glob(tmp_path, "*/f", dotfiles=True) == ["link/f", "real/f"]
        assert expand_glob(tmp_path, "**/link/f", dotfiles=True) == ["link/f"]
        assert expand_glob(tmp_path, "*", dotfiles=True) == ["dangling", "link", "loop", "real"]
        assert expand_glob(tmp_path, "*/", dotfiles=True) == ["link", "real"]


def test_git_and_node_modules(tmp_path: Path) -> None:
    make_tree(tmp_path, ".git/config", "a/.git/config", "node_modules/m/index.js", "src/index.js")
    assert expand_glob(tmp_path, "**/config", dotfiles=True) == []
    assert expand_glob(tmp_path, "**/.git/config", dotfiles=True) == [".git/config", "a/.git/config"]
    assert expand_glob(tmp_path, ".git/*", dotfiles=True) == [".git/config"]
    assert expand_glob(tmp_path, "**/*.js", dotfiles=False) == ["src/index.js"]
    assert expand_glob(tmp_path, "**/*.js", dotfiles=True) == ["node_modules/m/index.js", "src/index.js"]
    assert expand_glob(tmp_path, "node_modules/**/*.js", dotfiles=False) == ["node_modules/m/index.js"]


if sys.platform == "linux":

    def test_names_that_are_not_utf8_are_found(tmp_path: Path) -> None:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")).write_text("")
        assert expand_glob(tmp_path, "*.txt", dotfiles=True) == ["\udcff.txt"]


def test_repeated_wildcards_stay_fast() -> None:
    hard = compile_glob("*a" * 30 + "b", dotfiles=True)
    assert hard.match("a" * 250, False) is False
    assert compile_glob("+(+(a|aa)|*(a))b", dotfiles=True).match("a" * 250, False) is False


# A naive matcher: every way to cut the name, by the definition of each form.


def naive(parts: list[object], name: str) -> bool:
    if not parts:
        return name == ""
    head, *rest = parts
    return any(naive_part(head, name[:cut]) and naive(rest, name[cut:]) for cut in range(len(name) + 1))


def naive_part(part: object, text: str) -> bool:
    if isinstance(part, str):
        return {"*": True, "?": len(text) == 1}.get(part, text == part)
    mark, alternatives = part  # type: ignore[misc]
    once = any(naive(alternative, text) for alternative in alternatives)
    if mark == "!":
        return not once
    if mark == "@":
        return once
    if mark == "?":
        return once or text == ""
    if text == "":
        return mark == "*" or once
    cuts = range(1, len(text) + 1)
    return any(
        any(naive(alternative, text[:cut]) for alternative in alternatives)
        and naive_part(("*", alternatives), text[cut:])
        for cut in cuts
    )


def written(parts: list[object]) -> str:
    return "".join(
        part if isinstance(part, str) else f"{part[0]}({'|'.join(map(written, part[1]))})"  # type: ignore[index]
        for part in parts
    )


ATOMS = st.sampled_from(["a", "b", "*", "?"])
PARTS = st.recursive(
    st.lists(ATOMS, max_size=3),
    lambda inner: st.lists(
        ATOMS | st.tuples(st.sampled_from("@?*+!"), st.lists(inner, min_size=1, max_size=2)), max_size=3
    ),
    max_leaves=6,
)


@settings(max_examples=500, deadline=None)
@given(parts=PARTS, name=st.text("ab", min_size=1, max_size=5))
def test_names_agree_with_a_naive_matcher(parts: list[object], name: str) -> None:
    pattern = written(parts)
    if pattern not in ("", "**"):
        assert compile_glob(pattern, dotfiles=True).match(name, False) is naive(parts, name)


SEGMENTS = st.sampled_from(["a", "b", "*", "**", "?"])


@settings(max_examples=300, deadline=None)
@given(pattern=st.lists(SEGMENTS, min_size=1, max_size=4), path=st.lists(st.sampled_from("ab"), min_size=1, max_size=4))
def test_depth_agrees_with_a_naive_matcher(pattern: list[str], path: list[str]) -> None:
    def matches(segments: list[str], names: list[str]) -> bool:
        if not segments:
            return not names
        if segments == ["**"]:
            return bool(names)
        if segments[0] == "**":
            return any(matches(segments[1:], names[cut:]) for cut in range(len(names) + 1))
        return bool(names) and naive([segments[0]], names[0]) and matches(segments[1:], names[1:])

    assert compile_glob("/".join(pattern), dotfiles=True).match("/".join(path), False) is matches(pattern, path)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[str, bool]]]:
    root = tmp_path_factory.mktemp("tree")
    for first, second, third in itertools.product("ab", "ab", ["a", "b", ".c"]):
        make_tree(root, f"{first}/{second}/{third}")
    found = [(path.relative_to(root).as_posix(), path.is_dir()) for path in root.rglob("*")]
    return root, sorted(found)


@settings(max_examples=100, deadline=None)
@given(
    segments=st.lists(st.sampled_from(["a", "*", "**", "{a,b}", "!(a)", ".*", "[!a]"]), min_size=1, max_size=4),
    directories=st.booleans(),
    dotfiles=st.booleans(),
)
def test_expansion_agrees_with_matching(
    tree: tuple[Path, list[tuple[str, bool]]], segments: list[str], directories: bool, dotfiles: bool
) -> None:
    root, found = tree
    pattern = "/".join(segments) + "/" * directories
    glob = compile_glob(pattern, dotfiles=dotfiles)
    assert expand_glob(root, pattern, dotfiles=dotfiles) == [path for path, is_dir in found if glob.match(path, is_dir)]
