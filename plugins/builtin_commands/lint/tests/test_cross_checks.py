"""Stimuli that load and hardly do what they were written for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from textwrap import dedent, indent
from typing import Any

import pytest

from vally.testing import ProjectBuilder, plugin_host
from vally_command_lint.findings import Finding
from vally_command_lint.linting import LintOptions, lint

MARK = "»"


def places(findings: Sequence[Finding]) -> list[tuple[str, int | None, int | None]]:
    return [(found.code, found.line, found.column) for found in findings]


def spec(block: str, *, root: str = "") -> str:
    """A spec with one stimulus that has the keys of `block`, and keys at the root."""
    return f"name: e\n{dedent(root)}stimuli:\n  - name: s\n    prompt: do it\n{indent(dedent(block), '    ')}"


def marked(text: str) -> tuple[str, tuple[int, int]]:
    """The text without its mark, and line and column of what the mark stands before."""
    before, _, after = text.partition(MARK)
    return before + after, (before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)


ANY = "pattern-matches-any-text"
NEVER = "pattern-never-matches"
PATTERNS = {
    "any text": (ANY, """
        graders:
          - type: says-pattern
            config:
              pattern: »a*
        """),
    "any text, negated": (ANY, "graders: [{type: says-pattern, config: {pattern: »'x?', negate: true}}]\n"),
    "no text": (NEVER, "graders: [{type: says-pattern, config: {pattern: »'$x'}}]\n"),
    "no text in a list": (NEVER, """
        graders:
          - type: ran
            config:
              required:
                - bash
                - name: view
                  command: »'(?!)'
        """),
    "no text in a constraint": (NEVER, """
        constraints:
          expect_tools: [bash, »'[]']
        """),
}  # fmt: skip
NO_PATTERNS = {
    "any text as one condition of several": "graders: [{type: ran, config: {required: [{name: '.*', command: x}]}}]",
    "nearly any text": r"graders: [{type: says-pattern, config: {pattern: '\S'}}]",
    "a placeholder": "graders: [{type: says-pattern, config: {pattern: '${X}'}}]",
    "no pattern": "graders: [{type: says-text, config: {text: 'a*'}}]",
}


@pytest.mark.parametrize(("code", "block"), PATTERNS.values(), ids=PATTERNS)
def test_patterns_that_decide_nothing(code: str, block: str, spec_lint: Any) -> None:
    text, place = marked(spec(block))
    found = spec_lint(text, ANY, NEVER)
    assert places(found) == [(code, *place)]
    assert found[0].level == "warning"


@pytest.mark.parametrize("block", NO_PATTERNS.values(), ids=NO_PATTERNS)
def test_patterns_that_may_decide_something(block: str, spec_lint: Any) -> None:
    assert spec_lint(spec(f"{block}\n"), ANY, NEVER) == []


def test_an_entry_of_the_root_is_reported_once(spec_lint: Any) -> None:
    text, place = marked(spec("tags: {a: b}\n", root="graders: [{type: says-pattern, config: {pattern: »'$x'}}]\n"))
    found = spec_lint(text + "  - {name: t, prompt: do it}\n", ANY, NEVER)
    assert places(found) == [(NEVER, *place)]
    assert found[0].context == "grader 1"


CLASHES = {
    "two constraints": """
        constraints:
          expect_tools: [view, bash]
          reject_tools: [»bash]
        """,
    "a grader and a constraint": """
        graders: [{type: ran, config: {required: [bash]}}]
        constraints: {reject_tools: [»bash]}
        """,
    "the stricter one is required": """
        graders:
          - {type: ran, config: {required: [{name: bash, command: x}]}}
          - {type: ran, config: {disallowed: [»bash]}}
        """,
    "the required one comes last": """
        graders:
          - {type: ran, config: {disallowed: [{name: bash}]}}
          - {type: ran, config: {required: [»bash]}}
        """,
    "skills": """
        constraints:
          expect_skills: [a]
          reject_skills: [b, »a]
        """,
    "any skill": """
        constraints:
          expect_skills: [a]
          reject_skills: [»'*']
        """,
    "a keyword and its negation": """
        graders:
          - {type: says-text, config: {text: a}}
          - »{type: says-not-text, config: {text: a}}
        """,
    "negated by a setting": """
        graders:
          - {type: says-pattern, config: {pattern: a}}
          - »{type: says-pattern, config: {pattern: a, negate: true}}
        """,
    "disallowed in the whole run": """
        graders:
          - {type: ran, turn: 0, config: {required: [bash]}}
          - {type: ran, config: {disallowed: [»bash]}}
        """,
    "disallowed for every agent": """
        graders:
          - {type: ran, scope: main, config: {required: [bash]}}
          - {type: ran, config: {disallowed: [»bash]}}
        """,
    "disallowed for every agent, in so many words, and first": """
        graders:
          - {type: ran, scope: all, config: {disallowed: [bash]}}
          - {type: ran, scope: {agent: helper}, config: {required: [»bash]}}
        """,
    "disallowed for the same agent": """
        graders:
          - {type: ran, scope: {agent: helper}, config: {required: [bash]}}
          - {type: ran, scope: {agent: helper}, config: {disallowed: [»bash]}}
        """,
}
NO_CLASHES = {
    "different items": """
        constraints:
          expect_tools: [bash]
          reject_tools: [view]
        """,
    "only some calls are disallowed": """
        graders:
          - {type: ran, config: {required: [bash]}}
          - {type: ran, config: {disallowed: [{name: bash, command: x}]}}
        """,
    "different turns": """
        graders:
          - {type: ran, turn: 0, config: {required: [bash]}}
          - {type: ran, turn: 1, config: {disallowed: [bash]}}
        """,
    "required in the whole run": """
        graders:
          - {type: ran, config: {required: [bash]}}
          - {type: ran, turn: 0, config: {disallowed: [bash]}}
        """,
    "different agents": """
        graders:
          - {type: says-text, scope: main, config: {text: a}}
          - {type: says-not-text, scope: subagents, config: {text: a}}
        """,
    "required of any agent": """
        graders:
          - {type: ran, config: {required: [bash]}}
          - {type: ran, scope: subagents, config: {disallowed: [bash]}}
        """,
    "disallowed for another agent": """
        graders:
          - {type: ran, scope: {agent: helper}, config: {required: [bash]}}
          - {type: ran, scope: main, config: {disallowed: [bash]}}
        """,
    "required twice": """
        graders:
          - {type: says-text, config: {text: a}}
          - {type: says-text, config: {text: a}}
        """,
    "other texts": """
        graders:
          - {type: says-text, config: {text: a}}
          - {type: says-not-text, config: {text: b}}
        """,
    "placeholders": """
        graders:
          - {type: says-text, config: {text: '${A}'}}
          - {type: says-not-text, config: {text: '${A}'}}
        """,
}


@pytest.mark.parametrize("block", CLASHES.values(), ids=CLASHES)
def test_the_same_thing_required_and_disallowed(block: str, spec_lint: Any) -> None:
    text, place = marked(spec(block))
    found = spec_lint(text, "required-and-disallowed")
    assert places(found) == [("required-and-disallowed", *place)]
    other = place[0] - 1
    assert f"is both required and disallowed (see line {other})" in found[0].message
    assert found[0].level == "warning"


@pytest.mark.parametrize("block", NO_CLASHES.values(), ids=NO_CLASHES)
def test_what_can_hold_together(block: str, spec_lint: Any) -> None:
    text = spec(block).replace("    prompt: do it", "    turns: [a, b]")
    assert spec_lint(text, "required-and-disallowed") == []


VACUOUS = "{type: says-pattern, config: {pattern: 'a*'}}"
REAL = "{type: says-text, config: {text: a}}"
BOTH = f"graders: [{VACUOUS}, {REAL}]\n"
UNWEIGHED = f"graders: [{VACUOUS}, {REAL[:-1]}, weight: 0}}]\n"
WEIGHTS = "scoring: {threshold: 0.9, weights: {says-pattern: 9, says-text: 1}}\n"
NO_FAILURE = {
    "only patterns for any text": (f"graders: [{VACUOUS}]\n", "", "every grader passes"),
    "threshold zero": (f"graders: [{REAL}]\n", "scoring: {threshold: 0}\n", "its score is at least"),
    "what can fail weighs nothing": (UNWEIGHED, "scoring: {threshold: 0.5}\n", "weighs too little"),
    "what can fail weighs little": (BOTH, "scoring: {threshold: 0.5}\n", "weighs too little"),
    "weight by type": (BOTH, WEIGHTS, "weighs too little"),
}
FAILURE = {
    "one can fail": (BOTH, ""),
    "weight zero without a threshold": (UNWEIGHED, ""),
    "one that can fail is required": (UNWEIGHED.replace("weight: 0", "required: true"), "scoring: {threshold: 0}\n"),
    "a constraint": (
        f"graders: [{VACUOUS}]\nconstraints: {{expect_tools: [bash]}}\n",
        "scoring: {threshold: 0.5}\n",
    ),
    "threshold above": (BOTH, "scoring: {threshold: 0.51}\n"),
    "a turn that may not be recorded": (f"graders: [{VACUOUS[:-1]}, turn: 0}}]\n", ""),
    "an empty scope": (f"graders: [{VACUOUS[:-1]}, scope: main}}]\n", ""),
    "negated": ("graders: [{type: says-pattern, config: {pattern: 'a*', negate: true}}]\n", ""),
    "an unknown grader": (f"graders: [{VACUOUS}, {{type: nothing}}]\n", ""),
    "no grader at all": ("graders: []\n", ""),
}


@pytest.mark.parametrize(("block", "root", "reason"), NO_FAILURE.values(), ids=NO_FAILURE)
def test_a_stimulus_that_cannot_fail(block: str, root: str, reason: str, spec_lint: Any) -> None:
    text, place = marked(spec(block, root=root).replace("- name: s", "- »name: s"))
    found = spec_lint(text, "cannot-fail")
    assert places(found) == [("cannot-fail", *place)]
    assert found[0].level == "warning"
    assert found[0].message.startswith("cannot fail: ")
    assert reason in found[0].message


@pytest.mark.parametrize(("block", "root"), FAILURE.values(), ids=FAILURE)
def test_a_stimulus_that_can_fail(block: str, root: str, spec_lint: Any) -> None:
    assert spec_lint(spec(block, root=root), "cannot-fail") == []


OFFERED = "environment: {skills: [skills/reader]}\n"
SKILLS = {
    "required": ("graders: [{type: used, config: {required: [reader, »raeder]}}]\n", "warning"),
    "disallowed": ("graders: [{type: used, config: {disallowed: [»raeder]}}]\n", "info"),
    "rejected": ("constraints: {reject_skills: [»raeder]}\n", "info"),
}


@pytest.mark.parametrize(("block", "level"), SKILLS.values(), ids=SKILLS)
def test_a_skill_that_is_not_offered(block: str, level: str, project: ProjectBuilder, spec_lint: Any) -> None:
    project.skill("reader")
    text, place = marked(spec(block + OFFERED))
    found = spec_lint(text, "unknown-skill-in-grader")
    assert places(found) == [("unknown-skill-in-grader", *place)]
    assert (found[0].level, found[0].hint) == (level, "did you mean 'reader'?")


@pytest.mark.parametrize(
    "block",
    [
        f"constraints: {{expect_skills: [raeder]}}\n{OFFERED}",
        f"constraints: {{reject_skills: ['*']}}\n{OFFERED}",
        "graders: [{type: used, config: {required: [raeder]}}]\n",
        "graders: [{type: used, config: {required: [raeder]}}]\nenvironment: {skills: [skills/none]}\n",
        f"graders: [{{type: used, config: {{required: [reader]}}}}]\n{OFFERED}",
    ],
    ids=["told by the spec layer", "any skill", "none declared", "one is missing", "offered"],
)
def test_skills_of_which_nothing_can_be_said(block: str, project: ProjectBuilder, spec_lint: Any) -> None:
    project.skill("reader")
    assert spec_lint(spec(block), "unknown-skill-in-grader") == []


TOOLS = {
    "expected": ("constraints: {expect_tools: [bash, »create]}\n", "warning"),
    "rejected": ("constraints: {reject_tools: [»shell]}\n", "info"),
    "required by a grader": ("graders: [{type: ran, config: {required: [{name: »'^create$'}]}}]\n", "warning"),
}


@pytest.mark.parametrize(("block", "level"), TOOLS.values(), ids=TOOLS)
def test_a_tool_that_the_agent_does_not_have(block: str, level: str, spec_lint: Any) -> None:
    text, place = marked(spec(block, root="defaults: {executor: tool-agent}\n"))
    found = spec_lint(text, "unknown-tool-in-grader")
    assert places(found) == [("unknown-tool-in-grader", *place)]
    assert (found[0].level, found[0].hint) == (level, "tools: bash, view")


@pytest.mark.parametrize(
    ("block", "executor"),
    [
        ("constraints: {expect_tools: [create]}\n", "some-agent"),
        ("constraints: {expect_tools: [create]}\n", "not-installed"),
        ("constraints: {expect_tools: ['BASH|v.ew']}\n", "tool-agent"),
        ("constraints: {expect_tools: [x]}\nenvironment: {mcpServers: {a: {command: x}}}\n", "tool-agent"),
    ],
    ids=["unknown tools", "no executor", "a pattern", "a server may have it"],
)
def test_tools_of_which_nothing_can_be_said(block: str, executor: str, spec_lint: Any) -> None:
    assert spec_lint(spec(block, root=f"defaults: {{executor: {executor}}}\n"), "unknown-tool-in-grader") == []


def test_findings_of_both_layers_stand_by_position(spec_lint: Any) -> None:
    text = spec(f"graders: [{VACUOUS}]\nrubric: [x]\n")
    assert places(spec_lint(text)) == [("cannot-fail", 3, 5), (ANY, 5, 54), ("rubric-without-llm-judge", 6, 13)]


def test_a_plugin_that_breaks_while_it_is_asked_stops_nothing(project: ProjectBuilder, stand_ins: Any) -> None:
    class Broken:
        def settled_verdict(self, config: object) -> bool:
            raise RuntimeError("no")

        def tool_names(self, config: object) -> list[str]:
            raise RuntimeError("no")

        def grade(self, *_: object) -> None:
            raise AssertionError("not asked")

        execute = shutdown = grade

    records = [replace(record, factory=Broken) for record in stand_ins]
    block = f"graders: [{VACUOUS}]\nconstraints: {{expect_tools: [x]}}\n"
    project.file("eval.yaml", spec(block, root="defaults: {executor: tool-agent}\n"))
    report = lint(LintOptions(specs=("eval.yaml",)), cwd=project.root, host=plugin_host(*records))
    assert {item.code for item in report.evals[0].findings} == {"pattern-matches-any-text"}


def test_secrets_stand_in_no_finding(spec_lint: Any) -> None:
    grader = "{type: says-pattern, config: {pattern: '(${API_TOKEN})?'}}"
    text = f"stimuli: [{{name: 'a ${{API_TOKEN}}', prompt: p, graders: [{grader}]}}]\n"
    found = spec_lint(text, "pattern-matches-any-text", params={"API_TOKEN": "hunter2hunter2"})
    assert [(item.context, "hunter2" in item.message) for item in found] == [
        ("stimulus 'a <redacted:API_TOKEN>', grader 1", False)
    ]
