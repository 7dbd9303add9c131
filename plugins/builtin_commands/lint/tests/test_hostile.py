"""Whatever a file holds, there is a report and no traceback, in time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vally.testing import ProjectBuilder, plugin_host
from vally_command_lint.linting import LintOptions, lint

PIECES = st.sampled_from([
    "---\n", "name: a\n", "description: d\n", "[a](b.md)", "![", "](", "<a href='x'>", "<!--", "-->", "```\n", "    ",
    "\0", "\r", "\u2028", "[id]: x\n", "http://x.org/", "https://[", "https://{a}.b", "| curl http://x.org | sh |",
    "#tool:x", "INVOKES x.py", "%zz", "${A}", "&a *a\n", "\ufeff", "\U0001f600", "- ", "> ", "{", "? [a]\n", "!!x y\n",
])  # fmt: skip
TEXTS = st.lists(PIECES | st.text(max_size=5), max_size=12).map("".join)
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def check(root: Path) -> Any:
    (root / "domains.txt").write_text("known.org\n", encoding="utf-8")
    (root / "allowed.txt").write_text("script:a:b\n", encoding="utf-8")
    options = LintOptions(paths=(".",), known_domains=root / "domains.txt", allowed_dependencies=root / "allowed.txt")
    return lint(options, cwd=root, host=plugin_host())


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(text=TEXTS)
def test_any_text_as_a_skill(text: str, project: ProjectBuilder) -> None:
    project.file("skills/a/SKILL.md", text.encode("utf-8", "surrogatepass"))
    project.file("skills/a/other.md", text.encode("utf-8", "surrogatepass"))
    (report,) = check(project.root).skills
    assert [item.id for item in report.checks][:2] == ["spec-compliance", "valid-refs"]


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(data=st.binary(max_size=200))
def test_any_bytes_as_a_skill(data: bytes, project: ProjectBuilder) -> None:
    project.file("skills/a/SKILL.md", b"---\nname: a\ndescription: d\n---\n" + data)
    assert len(check(project.root).skills) == 1


LARGE = {
    "brackets": "[" * 20_000,
    "links": "[a](" * 25_000,
    "backticks": "`x" * 50_000,
    "quotes": "> " * 50_000,
    "comments": "a" + "<!-- " * 20_000,
    "definitions": "".join(f"[{number}]: x\n" for number in range(10_000)),
    "addresses": "http://a.org/ " * 10_000,
    "pipes": "curl | a " * 20_000,
    "scripts": "<script " * 20_000,
    "stars": "**x" * 30_000,
}


@pytest.mark.parametrize("body", LARGE.values(), ids=LARGE)
def test_large_bodies_take_seconds_at_most(body: str, project: ProjectBuilder) -> None:
    project.skill("a", body)
    start = time.process_time()
    assert check(project.root).skills
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    "frontmatter",
    [
        "a: &a [*a]",
        "a: &a [x]\nb: [*a, *a]",
        "[" * 5_000,
        "{" * 5_000,
        "- " * 5_000,
        "a: !!python/x y",
    ],
    ids=["recursive", "aliases", "lists", "mappings", "dashes", "tag"],
)
def test_hostile_frontmatter_is_a_finding_or_none(frontmatter: str, project: ProjectBuilder) -> None:
    project.file("skills/a/SKILL.md", f"---\n{frontmatter}\n---\n")
    (report,) = check(project.root).skills
    assert not report.passed


def test_what_is_no_file_is_left_alone(project: ProjectBuilder) -> None:
    directory = project.skill("a", "see pipe and loop and gone")
    os.mkfifo(directory / "pipe.md")
    (directory / "loop.md").symlink_to("loop.md")
    (directory / "gone.md").symlink_to("nowhere")
    (directory / "locked.md").write_text("x", encoding="utf-8")
    assert check(project.root).skills[0].passed


def test_a_file_name_that_is_not_utf_8_is_shown(project: ProjectBuilder, cli: Any) -> None:
    directory = project.skill("a")
    Path(os.fsdecode(os.fsencode(directory) + b"/\xff.txt")).touch()
    for output in ("text", "json", "sarif"):
        result = cli("skills", "--output", output)
        assert result.exit_code == 0, result.stderr


ITEMS: dict[str, Callable[[int], str]] = {
    "stimuli": lambda number: f"  - {{name: s{number}, prompt: p}}\n",
    "stimuli with one name": lambda _: "  - {name: s, prompt: p}\n",
    "stimuli without anything": lambda _: "  - {}\n",
    "no stimuli": lambda _: "  - 1\n",
}
GRADERS_OF_ONE: dict[str, Callable[[int], str]] = {
    "one grader": lambda _: "{type: used}",
    "texts": lambda number: f"{{type: says-text, config: {{text: t{number}}}}}",
    "texts and their negation": lambda number: f"{{type: says-{'not-' * (number % 2)}text, config: {{text: t}}}}",
    "patterns": lambda number: f"{{type: says-pattern, config: {{pattern: 'a{number}.*'}}}}",
    "calls": lambda number: f"{{type: ran, config: {{required: [t{number}]}}}}",
    "calls that are not allowed": lambda number: f"{{type: ran, config: {{disallowed: [t{number}]}}}}",
    "calls wanted and not": lambda number: f"{{type: ran, config: {{{['required', 'disallowed'][number % 2]}: [t]}}}}",
    "unknown types": lambda number: f"{{type: sais-text{number}}}",
    "no type": lambda _: "{}",
    "no graders": lambda _: "[]",
    "unknown keys": lambda number: f"{{type: says-text, config: {{texd{number}: t}}}}",
}


def calls(work: Callable[[], object]) -> int:
    """How many functions are called."""
    count = 0

    def tally(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(tally)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("kind", [*ITEMS, *GRADERS_OF_ONE])
def test_work_grows_as_files_do(kind: str, spec_lint: Any) -> None:
    def spec_of(length: int) -> str:
        if kind in ITEMS:
            return "name: e\nstimuli:\n" + "".join(map(ITEMS[kind], range(length)))
        listed = ", ".join(map(GRADERS_OF_ONE[kind], range(length)))
        return f"name: e\nstimuli:\n  - {{name: s, prompt: p, graders: [{listed}]}}\n"

    def counted(length: int) -> int:
        return calls(lambda: spec_lint(spec_of(length)))

    counted(4)  # Not what is only done the first time.
    few, many = counted(100), counted(800)
    assert many < 10 * few
