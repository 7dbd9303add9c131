"""What SKILL.md links to, and what nothing mentions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally.testing import ProjectBuilder

FILE = "skills/reader/SKILL.md"

# The body starts in line 6 of the file that ProjectBuilder.skill writes, below a heading and a blank line.
BROKEN = {
    "inline link": ("[a](a.md)", [("broken-ref", 8, 1)]),
    "in the middle of a line": ("text é [a](a.md)", [("broken-ref", 8, 8)]),
    "second line of a paragraph": ("text\n  more [a](a.md)", [("broken-ref", 9, 8)]),
    "image": ("![a](a.png)", [("broken-ref", 8, 1)]),
    "image in a link": ("[![a](a.png)](b.md)", [("broken-ref", 8, 1), ("broken-ref", 8, 2)]),
    "with a title": ('[a](a.md "title")', [("broken-ref", 8, 1)]),
    "in angle brackets": ("[a](<a b.md>)", [("broken-ref", 8, 1)]),
    "percent escapes": ("[a](a%20b.md)", [("broken-ref", 8, 1)]),
    "fragment and query": ("[a](a.md?x=1#y)", [("broken-ref", 8, 1)]),
    "reference definition": ("see [a][id]\n\n[id]: a.md", [("broken-ref", 10, 1)]),
    "definition that nothing uses": ("[id]: a.md 'title'", [("broken-ref", 8, 1)]),
    "definition for the second time": ("[id]: a.md\n[id]: b.md", [("broken-ref", 8, 1), ("broken-ref", 9, 1)]),
    "list item": ("- one\n- see [a](a.md)", [("broken-ref", 9, 7)]),
    "block quote": ("> > [a](a.md)", [("broken-ref", 8, 5)]),
    "heading": ("## See [a](a.md) ##", [("broken-ref", 8, 8)]),
    "HTML link in a text": ("see <a class=x href='a.md'>a</a>", [("broken-ref", 8, 5)]),
    "HTML block": ("<div>\n  <img src=a.png>\n</div>", [("broken-ref", 9, 3)]),
    "target with a backslash": (r"[a](dir\a.md)", [("broken-ref", 8, 1)]),
    "the same target twice": ("[a](a.md)\n\n[b](a.md#x)", [("broken-ref", 8, 1)]),
    "wrong case": ("[a](Present.md)", [("broken-ref", 8, 1)]),
    "below a file": ("[a](present.md/x)", [("broken-ref", 8, 1)]),
    "parent": ("[a](../other/file.md)", [("escaping-ref", 8, 1)]),
    "parent on a detour": ("[a](dir/../../other/file.md)", [("escaping-ref", 8, 1)]),
    "absolute": ("[a](/etc/passwd)", [("escaping-ref", 8, 1)]),
    "absolute on Windows": ("[a](C:/x.md)", [("escaping-ref", 8, 1)]),
    "through a link": ("[a](outside/x.md)", [("escaping-ref", 8, 1)]),
}
FINE = {
    "file": "[a](present.md)",
    "dot": "[a](./present.md)",
    "directory": "[a](dir) [b](dir/)",
    "escaped name": "[a](with%20blank.md)",
    "out and in again": "[a](../reader/present.md)",
    "scheme": "[a](https://example.org/a) [b](mailto:x@example.org) <https://example.org>",
    "host": "[a](//example.org/a)",
    "fragment": "[a](#part)",
    "query only": "[a](?x)",
    "empty": "[a]()",
    "inline code": "`[a](a.md)`",
    "fence": "```\n[a](a.md)\n```",
    "tildes": "~~~ md\n[a](a.md)\n~~~",
    "indented code": "text\n\n    [a](a.md)",
    "comment": "<!-- [a](a.md) <a href='a.md'> -->",
    "comment of several lines": "<!--\n\n[a](a.md)\n\n-->",
    "escaped bracket": r"\[a](a.md)",
    "brackets without target": "[a] (a.md)",
    "use of a missing definition": "[a][nothing]",
    "frontmatter": "",
}


@pytest.fixture
def reader(project: ProjectBuilder) -> ProjectBuilder:
    directory = project.skill("reader")
    for name in ("present.md", "with blank.md", "dir/inner.md"):
        project.file(f"skills/reader/{name}", "text")
    project.file("skills/other/file.md", "text")
    project.file("outside/x.md", "text")
    (directory / "outside").symlink_to(project.root / "outside")
    return project


def references(lint_json: Any, body: str, reader: ProjectBuilder) -> dict[str, Any]:
    reader.skill("reader", body)
    check: dict[str, Any] = lint_json("skills/reader")["skills"][0]["checks"][1]
    assert check["id"] == "valid-refs"
    return check


@pytest.mark.parametrize(("body", "expected"), BROKEN.values(), ids=BROKEN)
def test_a_bad_target_is_found_where_it_stands(
    body: str, expected: list[tuple[str, int, int]], reader: ProjectBuilder, lint_json: Any
) -> None:
    check = references(lint_json, body, reader)
    assert sorted((item["code"], item["line"], item["column"]) for item in check["findings"]) == expected
    assert {item["file"] for item in check["findings"]} == {FILE}
    assert {item["level"] for item in check["findings"]} == {"error"}


@pytest.mark.parametrize("body", FINE.values(), ids=FINE)
def test_what_is_no_reference_or_a_good_one_passes(body: str, reader: ProjectBuilder, lint_json: Any) -> None:
    check = references(lint_json, body, reader)
    assert check["passed"]
    assert check["findings"] == []


def test_the_summary_counts_distinct_targets(reader: ProjectBuilder, lint_json: Any) -> None:
    check = references(lint_json, "[a](present.md) [b](./x.md) [c](x.md) [d](x.md) [e](../o)", reader)
    assert check["summary"] == "4 references, 3 broken"
    assert references(lint_json, "[a](present.md)", reader)["summary"] == "1 reference, 0 broken"
    assert references(lint_json, "nothing", reader)["summary"] is None


def orphans(lint_json: Any) -> list[str]:
    check = lint_json("skills")["skills"][0]["checks"][2]
    assert check["id"] == "orphan-files"
    assert {item["level"] for item in check["findings"]} <= {"info"}
    return [item["file"].removeprefix("skills/reader/") for item in check["findings"]]


ORPHANS = {
    "nothing mentions them": ("text", ["a.md", "dir/b.md", "dir/c.md"]),
    "bare name": ("see b.md", ["a.md", "dir/c.md"]),
    "path": ("run `dir/b.md`", ["a.md", "dir/c.md"]),
    "link with an escape": ("[x](dir/%62.md)", ["a.md", "dir/c.md"]),
    "link to a directory": ("[x](dir)", ["a.md"]),
    "directory with a slash": ("all of dir/ matters", ["a.md"]),
    "directory as part of a path": ("see dir/other.md", ["a.md", "dir/b.md", "dir/c.md"]),
    "a glob": ("see dir/*.md", ["a.md"]),
    "a chain": ("see a.md", ["dir/c.md"]),
}


@pytest.mark.parametrize(("body", "expected"), ORPHANS.values(), ids=ORPHANS)
def test_files_that_nothing_mentions_are_listed(
    body: str, expected: list[str], project: ProjectBuilder, lint_json: Any
) -> None:
    project.skill("reader", body)
    for name, text in {"a.md": "then b.md", "dir/b.md": "x", "dir/c.md": "x"}.items():
        project.file(f"skills/reader/{name}", text)
    assert orphans(lint_json) == expected


def test_some_files_are_never_orphans(project: ProjectBuilder, lint_json: Any) -> None:
    project.skill("reader", "text")
    for name in (
        "LICENSE.txt", "README.md", "CHANGELOG.md", ".gitignore", ".github/x.yml", "eval.yaml", "eval.yml",
        "x.eval.yaml", "evals/a/data.csv", "tests/test_a.py", "dir/LICENSE", "__pycache__/x.pyc", "node_modules/a.js",
    ):  # fmt: skip
        project.file(f"skills/reader/{name}", "x")
    assert orphans(lint_json) == []


def test_large_and_binary_files_are_not_read_for_mentions(project: ProjectBuilder, lint_json: Any) -> None:
    project.skill("reader", "large.txt binary.bin")
    project.file("skills/reader/large.txt", "a.md " * 300_000)
    project.file("skills/reader/binary.bin", b"\0a.md")
    project.file("skills/reader/a.md", "x")
    assert orphans(lint_json) == ["a.md"]


def test_a_large_body_is_mentioned(project: ProjectBuilder, skill_findings: Any) -> None:
    project.skill("small", "x" * (20_000 - len("\n# small\n\n\n")))
    project.skill("large", "x" * (20_001 - len("\n# large\n\n\n")))
    ((code, level, file, line, column, message),) = skill_findings()
    assert (code, level, file, line, column) == ("skill-size", "info", "skills/large/SKILL.md", 5, 1)
    assert message == "the body has about 5001 tokens, more than 5000"


def test_links_of_the_outer_file_system_are_not_followed(project: ProjectBuilder, lint_json: Any) -> None:
    directory: Path = project.skill("reader", "text")
    (directory / "loop").symlink_to(directory)
    assert orphans(lint_json) == []
