"""The rules for SKILL.md, each with level and position."""

from __future__ import annotations

from typing import Any

import pytest

from vally.testing import ProjectBuilder

FILE = "skills/log-reader/SKILL.md"
GOOD = "---\nname: log-reader\ndescription: Reads logs.\n---\n\nRead the log.\n"


def skill(*lines: str, name: str = "name: log-reader", description: str = "description: Reads logs.") -> str:
    return "\n".join(["---", *(line for line in (name, description) if line), *lines, "---", "", "Text.", ""])


NOTHING = [("frontmatter", "error", 1, 1), ("name-format", "error", 1, 1), ("description", "error", 1, 1)]
CASES = {
    "no frontmatter": ("Text.\n", NOTHING),
    "not at the start": ("\n" + GOOD, NOTHING),
    "never closed": ("---\nname: log-reader\n", NOTHING),
    "broken YAML": ("---\nname: [a\n---\n", [("frontmatter", "error", 3, 1)]),
    "a list": ("---\n- a\n---\n", [("frontmatter", "error", 2, 1)]),
    "a key twice": (skill("license: MIT", "license: MIT"), [("frontmatter", "error", 5, 1)]),
    "license": (skill("license: 3"), [("frontmatter", "error", 4, 10)]),
    "compatibility is a number": (skill("compatibility: 1"), [("frontmatter", "error", 4, 16)]),
    "compatibility is empty": (skill("compatibility: ''"), [("frontmatter", "error", 4, 16)]),
    "compatibility is long": (skill(f"compatibility: {'x' * 501}"), [("frontmatter", "error", 4, 16)]),
    "metadata": (skill("metadata: x"), [("frontmatter", "error", 4, 11)]),
    "allowed-tools": (skill("allowed-tools: [bash, 3]"), [("frontmatter", "error", 4, 16)]),
    "metadata values": (skill("metadata: {a: b, version: 1.0}"), [("metadata-not-string", "info", 4, 11)]),
    "an unknown key": (skill("categry: x"), [("unknown-frontmatter-key", "warning", 4, 1)]),
    "a key of some clients": (skill("argument-hint: x"), [("unknown-frontmatter-key", "info", 4, 1)]),
    "no name": (skill(name=""), [("name-format", "error", 1, 1)]),
    "name is a number": (skill(name="name: 3"), [("name-format", "error", 2, 7)]),
    "upper case": (skill(name="name: Log-Reader"), [("name-format", "error", 2, 7), ("name-format", "error", 2, 7)]),
    "two hyphens": (skill(name="name: log--reader"), [("name-format", "error", 2, 7), ("name-format", "error", 2, 7)]),
    "another name": (skill(name="name: log-read"), [("name-format", "error", 2, 7)]),
    "no description": (skill(description=""), [("description", "error", 1, 1)]),
    "description is a list": (skill(description="description: [a]"), [("description", "error", 3, 14)]),
    "description is blank": (skill(description="description: '  '"), [("description", "error", 3, 14)]),
    "description is long": (skill(description=f"description: {'é' * 1025}"), [("description", "error", 3, 14)]),
    "too many lines": (GOOD + "x\n" * 495, [("line-count", "error", 501, 1)]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_a_broken_rule_is_found_where_it_is_broken(
    text: str, expected: list[tuple[str, str, int, int]], project: ProjectBuilder, skill_findings: Any
) -> None:
    project.file(FILE, text)
    found = skill_findings()
    assert [(code, level, line, column) for code, level, _, line, column, _ in found] == expected
    assert {file for _, _, file, *_ in found} == {FILE}


GOOD_ONES = {
    "plain": GOOD,
    "with a byte-order mark": "\ufeff" + GOOD,
    "with CRLF": GOOD.replace("\n", "\r\n"),
    "every standard key": skill(
        "license: MIT", "compatibility: Needs git", "metadata: {a: b}", "allowed-tools: [bash]", "allowed-tools2: x"
    ).replace("allowed-tools2: x\n", ""),
    "tools as text": skill("allowed-tools: Bash(git:*) Read"),
    "500 lines": GOOD + "x\n" * 494,
    "1024 characters after trimming": skill(description=f"description: '  {'é' * 1024}  '"),
}


@pytest.mark.parametrize("text", GOOD_ONES.values(), ids=GOOD_ONES)
def test_what_keeps_the_rules_passes(text: str, project: ProjectBuilder, lint_json: Any) -> None:
    project.file(FILE, text)
    report = lint_json("skills", "--strict")
    assert report["passed"]
    assert report["skills"][0]["checks"][0] == {
        "id": "spec-compliance",
        "passed": True,
        "summary": "4/4 checks passed",
        "findings": [],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Text.\n", "no YAML frontmatter at the start of SKILL.md"),
        (skill("compatibility: 1"), "key 'compatibility' must be a string of 1 to 500 characters"),
        (skill(name="name: LOG"), "Name must be kebab-case"),
        (skill(name="name: log-read"), "name 'log-read' does not match its directory 'log-reader'"),
        (skill(description=f"description: {'x' * 1040}"), "description has 1040 characters, at most 1024 are allowed"),
        (GOOD + "x\n" * 527, "SKILL.md has 533 lines, at most 500 are allowed"),
        (skill("categry: x"), "unknown key 'categry'"),
    ],
)
def test_messages_are_those_that_are_documented(
    text: str, message: str, project: ProjectBuilder, skill_findings: Any
) -> None:
    project.file(FILE, text)
    assert message in [found[-1] for found in skill_findings()]


def test_a_name_may_have_64_characters_and_no_more(project: ProjectBuilder, skill_findings: Any) -> None:
    project.skill("a" * 64)
    project.skill("b" * 65)
    found = skill_findings()
    assert [item[-1] for item in found] == ["name must have 1 to 64 characters, it has 65"]


@pytest.mark.parametrize("data", [b"\xff\xfe---", b"---\nname: \xff\n---\n"], ids=["UTF-16", "not UTF-8"])
def test_a_file_that_is_no_text_fails(data: bytes, project: ProjectBuilder, lint_json: Any) -> None:
    project.file(FILE, data)
    skills = lint_json("skills")["skills"]
    assert skills[0]["checks"][0]["summary"] == "0/4 checks passed"
    assert [found["code"] for found in skills[0]["checks"][0]["findings"]] == ["frontmatter"]


def test_the_second_skill_of_a_name_is_reported(project: ProjectBuilder, skill_findings: Any) -> None:
    project.file("skills/a/log-reader/SKILL.md", GOOD)
    project.file("skills/b/log-reader/SKILL.md", GOOD)
    ((code, level, file, line, column, message),) = skill_findings()
    assert (code, level, line, column) == ("duplicate-skill-name", "warning", 2, 7)
    assert file == "skills/b/log-reader/SKILL.md"
    assert message == "another skill is named 'log-reader': skills/a/log-reader"
