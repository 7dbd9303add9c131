from __future__ import annotations

from typing import Any

import pytest

from vally.model.evalspec import Artifacts, Attachment, Constraints

GRADED = "graders: [{type: completed}]"


def keys(work: Any, text: str, **options: Any) -> Any:
    """Load a spec whose one stimulus has a prompt, a grader and these keys in line 5, starting at column 5."""
    return work(f"stimuli:\n  - name: a\n    prompt: p\n    {GRADED}\n    {text}\n", **options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("stimuli:\n", ["1:1 NO-STIMULI"]),
        ("stimuli: []\n", ["1:10 NO-STIMULI"]),
        ("name: n\n", ["1:1 NO-STIMULI"]),
        ("stimuli: {}\n", ["1:10 INVALID-TYPE"]),
        ("stimuli: [a]\n", ["1:11 INVALID-TYPE"]),
        (f"stimuli:\n  - {{prompt: p, {GRADED}}}\n", ["2:5 MISSING-KEY"]),
        (f"stimuli:\n  - {{name: ~, prompt: p, {GRADED}}}\n", ["2:5 MISSING-KEY"]),
        (f"stimuli:\n  - {{name: ' ', prompt: p, {GRADED}}}\n", ["2:12 INVALID-VALUE"]),
        (f"stimuli:\n  - {{name: 5, prompt: p, {GRADED}}}\n", ["2:12 INVALID-TYPE"]),
        (f'stimuli:\n  - {{name: "a\\nb", prompt: p, {GRADED}}}\n', ["2:12 INVALID-VALUE"]),
        (f'stimuli:\n  - {{name: "a\\u2028b", prompt: p, {GRADED}}}\n', ["2:12 INVALID-VALUE"]),
        (f"stimuli:\n  - {{name: {'x' * 201}, prompt: p, {GRADED}}}\n", ["2:12 INVALID-VALUE"]),
        (f"stimuli:\n  - {{name: {'😀' * 200}, prompt: p, {GRADED}}}\n", []),
        (f"stimuli:\n  - {{name: a, {GRADED}}}\n", ["2:5 MISSING-PROMPT"]),
        (f"stimuli:\n  - {{name: a, prompt: p, turns: [q], {GRADED}}}\n", ["2:26 PROMPT-AND-TURNS"]),
        (f"stimuli:\n  - {{name: a, prompt: ' ', {GRADED}}}\n", ["2:23 INVALID-VALUE"]),
        (f"stimuli:\n  - {{name: a, prompt: 5, {GRADED}}}\n", ["2:23 INVALID-TYPE"]),
        (f"stimuli:\n  - {{name: a, turns: [], {GRADED}}}\n", ["2:22 INVALID-VALUE"]),
        (f"stimuli:\n  - {{name: a, turns: x, {GRADED}}}\n", ["2:22 INVALID-TYPE"]),
        (f"stimuli:\n  - {{name: a, turns: [x, ''], {GRADED}}}\n", ["2:26 INVALID-VALUE"]),
        (f"stimuli:\n  - {{name: a, turns: [x, {{prompt: y}}], {GRADED}}}\n", ["2:26 deprecated-turn-mapping"]),
        (f"stimuli:\n  - {{name: a, turns: [x, {{text: y}}], {GRADED}}}\n", ["2:26 INVALID-TYPE"]),
    ],
)
def test_names_and_prompts(work: Any, text: str, expected: list[str]) -> None:
    assert work(text).found == expected


def test_where_a_nameless_stimulus_is(work: Any) -> None:
    item = work(f"stimuli:\n  - {{name: a, prompt: p, {GRADED}}}\n  - {{prompt: p, {GRADED}}}\n").only("missing-key")
    assert (item.message, item.context, item.pointer) == (
        "stimuli[1]: name is required",
        "stimulus 2",
        "/stimuli/1/name",
    )


def test_only_stimuli_that_can_run_are_kept(work: Any) -> None:
    found = work(
        f"stimuli:\n  - {{name: a, prompt: p, {GRADED}}}\n  - {{prompt: p, {GRADED}}}\n  - {{name: c, {GRADED}}}\n"
    )
    assert [stimulus.name for stimulus in found.spec.stimuli] == ["a"]


def test_names_are_unique(work: Any) -> None:
    def found(*names: str) -> list[str]:
        return work("stimuli:\n" + "".join(f"  - {{name: {name}, prompt: p, {GRADED}}}\n" for name in names)).found

    assert found("a", "b", "' a '") == ["4:12 DUPLICATE-STIMULUS-NAME"]
    assert found("é", '"e\\u0301"') == ["3:12 DUPLICATE-STIMULUS-NAME"]
    assert found("Straße", "STRASSE") == ["3:12 similar-stimulus-name"]
    assert found("a", "A", "b") == ["3:12 similar-stimulus-name"]


def test_a_duplicate_name_names_the_first(work: Any) -> None:
    item = work("stimuli:\n" + f"  - {{name: a, prompt: p, {GRADED}}}\n" * 2).only("duplicate-stimulus-name")
    assert item.message == "duplicate stimulus name 'a' (first at line 2)"
    assert [(note.line, note.column) for note in item.related] == [(2, 12)]


def test_turns(work: Any) -> None:
    text = f"stimuli:\n  - name: ' a '\n    turns: [' x ', {{prompt: y}}]\n    {GRADED}\n"
    stimulus = work(text).stimulus
    assert (stimulus.name, stimulus.turns, stimulus.prompt) == ("a", (" x ", "y"), " x \n\ny")
    assert stimulus.has_turns
    assert stimulus.document["turns"] == [" x ", "y"]
    single = keys(work, "tags: {}").clean.stimuli[0]
    assert (single.turns, single.prompt, single.has_turns) == (("p",), "p", False)
    assert "turns" not in single.document


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("promt: x", "5:5 UNKNOWN-STIMULUS-FIELD"),
        ("category: x", "5:5 ignored-stimulus-field"),
        ("config: {}", "5:5 ignored-stimulus-field"),
        ("runs: 3", "5:5 ignored-stimulus-field"),
        ("timeout: 5", "5:5 ignored-stimulus-field"),
        ("expect_activation: x", "5:5 ignored-stimulus-field"),
        ("invariants: [x]", "5:5 ignored-stimulus-field"),
        ("customized_disallow: [x]", "5:5 ignored-stimulus-field"),
        ("customized_required: [x]", "5:5 ignored-stimulus-field"),
        ("x-own: [x]", None),
    ],
)
def test_other_keys(work: Any, key: str, expected: str | None) -> None:
    assert keys(work, key).found == ([expected] if expected else [])


def test_hints_of_other_keys(work: Any) -> None:
    assert keys(work, "promt: x").only("unknown-stimulus-field").hint == "did you mean 'prompt'?"
    assert keys(work, "runs: 3").only("ignored-stimulus-field").hint == "use defaults.runs"
    assert keys(work, "category: x").only("ignored-stimulus-field").hint == "use tags"


# Rubric


@pytest.mark.parametrize(
    ("rubric", "expected", "found"),
    [
        ("[one, two]", ("one", "two"), []),
        ("one", ("one",), ["5:13 scalar-for-list"]),
        ("\n      - Quality: is good  # yes\n      - b", ("Quality: is good", "b"), ["6:9 rubric-item-not-string"]),
        (
            "\n      - a: b\n        c: [d,\n          e]\n\n      # note\n      - b",
            ("a: b\n        c: [d,\n          e]", "b"),
            ["6:9 rubric-item-not-string"],
        ),
        ("[{a: b}]", ("{a: b}",), ["5:14 rubric-item-not-string"]),
        ("[[x, y]]", ("[x, y]",), ["5:14 rubric-item-not-string"]),
        ("[' ', one]", ("one",), ["5:14 INVALID-VALUE"]),
        ("[5, one]", ("one",), ["5:14 INVALID-TYPE"]),
        ("{a: b}", (), ["5:13 INVALID-TYPE"]),
    ],
)
def test_rubric(work: Any, rubric: str, expected: tuple[str, ...], found: list[str]) -> None:
    read = keys(work, f"rubric: {rubric}")
    assert [item for item in read.found if "rubric-without-llm-judge" not in item] == found
    assert read.stimulus.rubric == expected


def test_placeholders_in_a_rubric_that_became_a_mapping(work: Any) -> None:
    read = keys(work, "rubric:\n      - Uses ${X}: always", params={"X": "it"})
    assert read.stimulus.rubric == ("Uses it: always",)
    assert read.only("rubric-item-not-string").message == (
        'rubric item is not a string; quote it (read as "Uses it: always")'
    )


# Constraints


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{max_turns: -1}", ["5:30 INVALID-CONSTRAINT-VALUE"]),
        pytest.param("{max_tokens: -1}", ["5:31 INVALID-CONSTRAINT-VALUE"], id="CT-4"),
        ("{max_turns: 1.5}", ["5:30 INVALID-CONSTRAINT-VALUE"]),
        ("{max_turns: 'x'}", ["5:30 INVALID-CONSTRAINT-VALUE"]),
        ("{max_duration: 0s}", ["5:33 INVALID-CONSTRAINT-VALUE"]),
        ("{max_duration: 5x}", ["5:33 INVALID-CONSTRAINT-VALUE"]),
        ("{max_duration: 5}", ["5:33 bare-duration"]),
        ("{expect_tools: t}", ["5:33 scalar-for-list"]),
        ("{expect_tools: [1]}", ["5:34 INVALID-CONSTRAINT-VALUE"]),
        ("{expect_tools: [a, '', 1]}", ["5:37 INVALID-CONSTRAINT-VALUE", "5:41 INVALID-CONSTRAINT-VALUE"]),
        ("{expect_tools: {a: b}}", ["5:33 INVALID-CONSTRAINT-VALUE"]),
        ("{expect_tools: ['(']}", ["5:33 INVALID-CONSTRAINT-VALUE"]),
        ("{expect_tools: []}", []),
        ("{max_turn: 1}", ["5:19 UNKNOWN-KEY"]),
        ("[max_turns]", ["5:18 INVALID-TYPE"]),
        ("{max_turns: ~}", []),
    ],
)
def test_constraints(work: Any, text: str, expected: list[str]) -> None:
    assert keys(work, f"constraints: {text}").found == expected


def test_the_message_about_a_constraint(work: Any) -> None:
    item = keys(work, "constraints: {max_tokens: -1}").only("invalid-constraint-value")
    assert item.message == "constraints.max_tokens: -1 is not allowed; expected an integer >= 0"
    assert (item.context, item.pointer) == ("stimulus 'a'", "/stimuli/0/constraints/max_tokens")


def test_constraint_values(work: Any) -> None:
    text = "{max_turns: 3, max_tokens: 0, max_duration: 90, max_agent_duration: 2m, reject_skills: ['*']}"
    stimulus = keys(work, f"constraints: {text}").stimulus
    assert stimulus.constraints == Constraints(
        max_turns=3, max_tokens=0, max_duration_ms=90_000, max_agent_duration_ms=120_000
    )
    made = [(entry.type, dict(entry.config), entry.constraint) for entry in stimulus.graders[1:]]
    assert made == [
        ("turn-count", {"max": 3}, "max_turns"),
        ("token-budget", {"max": 0}, "max_tokens"),
        ("wall-time", {"max": "90s"}, "max_duration"),
        ("skill-invocation", {"disallowed": ["*"]}, "reject_skills"),
    ]
    assert all(entry.required and entry.weight is None and entry.name is None for entry in stimulus.graders[1:])
    assert stimulus.document["constraints"] == {
        "max_turns": 3,
        "max_tokens": 0,
        "max_duration": "90s",
        "max_agent_duration": "2m",
        "reject_skills": ["*"],
    }
    assert stimulus.document["graders"] == [{"type": "completed"}]


def test_a_constraint_that_nobody_checks(work: Any, records: Any) -> None:
    from vally.host import PluginHost

    host = PluginHost.from_objects(*(record for record in records if record.name != "turn-count"))
    found = keys(work, "constraints: {max_turns: 3}", host=host)
    assert found.found == ["5:19 UNKNOWN-GRADER-TYPE"]


def test_expected_skills(work: Any) -> None:
    work.skill("alpha")
    work.skill("beta", name="second")
    found = keys(work, "environment: {skills: [alpha, beta]}\n    constraints: {expect_skills: [alpha, secnd, beta]}")
    assert found.found == ["6:42 unknown-skill-in-constraint", "6:49 unknown-skill-in-constraint"]
    assert found.diagnostics[0].hint == "did you mean 'second'?"
    assert found.diagnostics[0].message == "'secnd' is not among the skills of this stimulus"


@pytest.mark.parametrize(
    ("text", "offered", "expected"),
    [
        ("constraints: {expect_skills: [s]}", False, ["5:34 nothing-under-test"]),
        ("constraints: {expect_skills: [s]}", True, []),
        (
            "environment: {skills: []}\n    constraints: {expect_skills: [s]}",
            True,
            ["6:34 nothing-under-test"],
        ),
        ("environment: {skills: [missing]}\n    constraints: {expect_skills: [s]}", True, ["5:28 SKILL-NOT-FOUND"]),
        ("constraints: {reject_skills: [s]}", False, []),
    ],
)
def test_nothing_under_test(work: Any, text: str, offered: bool, expected: list[str]) -> None:
    assert sorted(keys(work, text, skill_dirs=offered).found) == sorted(expected)


def test_nothing_under_test_by_a_grader(work: Any) -> None:
    entry = "{type: skill-invocation, config: {required: [s]}}"
    text = f"stimuli:\n  - name: a\n    prompt: p\n    graders:\n      - {entry}\n"
    found = work(text)
    assert found.found == ["5:9 nothing-under-test"]
    assert found.diagnostics[0].level == "warning"
    assert work(text, lint=True).diagnostics[0].level == "info"
    assert work(text.replace("required", "disallowed")).found == []


# Artifacts, attachments


@pytest.mark.parametrize(
    ("text", "expected", "found"),
    [
        ("{include: ['*.md'], exclude: [x]}", Artifacts(include=("*.md",), exclude=("x",)), []),
        ("{include: '*.md'}", Artifacts(include=("*.md",)), ["5:26 scalar-for-list"]),
        ("{exclude: [x]}", Artifacts(exclude=("x",)), ["5:26 artifacts-exclude-only"]),
        ("{includes: [x]}", Artifacts(), ["5:17 UNKNOWN-KEY"]),
        ("[x]", Artifacts(), ["5:16 INVALID-TYPE"]),
    ],
)
def test_artifacts(work: Any, text: str, expected: Artifacts, found: list[str]) -> None:
    read = keys(work, f"artifacts: {text}")
    assert read.found == found
    assert read.stimulus.artifacts == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("f.png", []),
        ("{path: f.png, turn: 0}", []),
        ("none.png", ["5:19 ATTACHMENT-NOT-FOUND"]),
        ("{path: none.png}", ["5:26 ATTACHMENT-NOT-FOUND"]),
        ("d", ["5:19 ATTACHMENT-NOT-FOUND"]),
        ("{path: f.png, turn: 1}", ["5:39 INVALID-VALUE"]),
        ("{path: f.png, turn: -1}", ["5:39 INVALID-VALUE"]),
        ("{name: x}", ["5:19 MISSING-KEY"]),
        ("{path: f.png, mime: x}", ["5:33 UNKNOWN-KEY"]),
        ("[f.png]", ["5:19 INVALID-TYPE"]),
        ("''", ["5:19 INVALID-VALUE"]),
    ],
)
def test_attachments(work: Any, item: str, expected: list[str]) -> None:
    work.write("f.png")
    work.write("d/x")
    assert keys(work, f"attachments: [{item}]").found == expected


def test_attachment_values(work: Any) -> None:
    path = work.write("f.png")
    data = work.write("data")
    found = keys(work, "attachments: [f.png, {path: data, name: n, mimeType: text/x, turn: 0}, data]")
    assert found.clean.stimuli[0].attachments == (
        Attachment(path=path, name="f.png", mime_type="image/png"),
        Attachment(path=data, name="n", mime_type="text/x"),
        Attachment(path=data, name="data", mime_type="application/octet-stream"),
    )


def test_a_large_attachment(work: Any) -> None:
    path = work.write("f.bin")
    with path.open("r+b") as file:
        file.truncate(32 * 2**20 + 1)
    item = keys(work, "attachments: [f.bin]").only("attachment-too-large")
    assert (item.line, item.column) == (5, 19)
    assert item.message == "attachment f.bin has 33554433 bytes, at most 33554432 are allowed"
    with path.open("r+b") as file:
        file.truncate(32 * 2**20)
    assert keys(work, "attachments: [f.bin]").found == []


# Simulation


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", []),
        ("{user: {goal: g, persona: p, model: m, max_iterations: 3}}", []),
        ("{user: {}}", ["5:24 MISSING-KEY"]),
        ("{user: {goal: ''}}", ["5:31 INVALID-VALUE"]),
        ("{user: {goal: g, max_iterations: 0}}", ["5:50 INVALID-VALUE"]),
        ("{user: {goal: g, max_iterations: 101}}", ["5:50 INVALID-VALUE"]),
        ("{user: {goal: g, aim: x}}", ["5:34 UNKNOWN-KEY"]),
        ("{users: {}}", ["5:18 UNKNOWN-KEY"]),
        ("{tool_overrides: [{tool: t, result: ~}]}", []),
        ("{tool_overrides: [{tool: t, error: e, server: s, arguments: [1]}]}", []),
        ("{tool_overrides: [{tool: t}]}", ["5:35 MISSING-KEY"]),
        ("{tool_overrides: [{result: 1}]}", ["5:35 MISSING-KEY"]),
        ("{tool_overrides: [{tool: t, result: 1, error: e}]}", ["5:63 INVALID-VALUE"]),
        (
            "{tool_overrides: [{tool: t, arguments: {a: 1, b: 2}, error: e}, "
            "{tool: t, arguments: {b: 2.0, a: 1}, error: f}]}",
            ["5:81 DUPLICATE-TOOL-OVERRIDE"],
        ),
        (
            "{tool_overrides: [{tool: t, result: 1}, {tool: t, arguments: {}, error: e}]}",
            ["5:57 DUPLICATE-TOOL-OVERRIDE"],
        ),
        ("{tool_overrides: [{tool: t, result: 1}, {tool: t, server: s, result: 1}]}", []),
        ("{tool_overrides: [{tool: t, arguments: {a: 1}, result: 1}, {tool: t, arguments: {a: true}, result: 1}]}", []),
    ],
)
def test_simulation(work: Any, text: str, expected: list[str]) -> None:
    assert keys(work, f"simulation: {text}").found == expected


def test_simulation_values(work: Any) -> None:
    overrides = "[{tool: t, result: ~}, {tool: u, server: s, arguments: {a: [1]}, error: ''}]"
    text = f"{{user: {{goal: g}}, tool_overrides: {overrides}}}"
    expected = {
        "user": {"goal": "g"},
        "tool_overrides": [
            {"tool": "t", "result": None, "arguments": {}},
            {"tool": "u", "server": "s", "arguments": {"a": [1]}, "error": ""},
        ],
    }
    stimulus = keys(work, f"simulation: {text}").clean.stimuli[0]
    assert stimulus.simulation == expected
    assert stimulus.document["simulation"] == expected
    assert keys(work, "simulation: {}").clean.stimuli[0].simulation is None


# Golden inputs

PATCH = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("golden_patch: {path: fix.patch}", []),
        ("golden_patch: {path: none.patch}", ["5:26 GOLDEN-FILE-NOT-FOUND"]),
        ("golden_patch: {path: text}", ["5:26 INVALID-GOLDEN-INPUT"]),
        ("golden_patch: {}", ["5:19 INVALID-GOLDEN-INPUT"]),
        ("golden_patch: {path: fix.patch, inline: x}", ["5:19 INVALID-GOLDEN-INPUT"]),
        ("golden_patch: {inline: no diff}", ["5:28 INVALID-GOLDEN-INPUT"]),
        ("golden_patch: {inline: [x]}", ["5:28 INVALID-GOLDEN-INPUT"]),
        ("golden_patch: fix.patch", ["5:19 INVALID-TYPE"]),
        ("golden_patch: {patch: x}", ["5:19 INVALID-GOLDEN-INPUT", "5:20 UNKNOWN-KEY"]),
        ("golden_command: make", []),
        ("golden_command: ''", ["5:21 INVALID-VALUE"]),
        ("golden_command: {command: make, args: [x], timeout: 5s, env: {A: b}}", []),
        ("golden_command: {args: [x]}", ["5:21 MISSING-KEY"]),
        ("golden_command: {command: make, timeout: 0s}", ["5:46 INVALID-DURATION"]),
        ("golden_command: [make]", ["5:21 INVALID-TYPE"]),
        ("golden_patch: {path: fix.patch}\n    golden_command: make", ["6:5 GOLDEN-CONFLICT"]),
        ("golden_trajectory: {path: t.json}\n    golden_command: make", []),
        ("golden_trajectory: {inline: {steps: []}}", []),
        ("golden_trajectory: {inline: '{\"a\": 1}'}", []),
        ("golden_trajectory: {inline: '{'}", ["5:33 INVALID-GOLDEN-INPUT"]),
        ("golden_trajectory: {inline: [1]}", ["5:33 INVALID-GOLDEN-INPUT"]),
        ("golden_trajectory: {path: text}", ["5:31 INVALID-GOLDEN-INPUT"]),
    ],
)
def test_golden_inputs(work: Any, text: str, expected: list[str]) -> None:
    work.write("fix.patch", PATCH)
    work.write("text", "no diff and no JSON\n")
    work.write("t.json", '{"steps": []}')
    assert keys(work, text).found == expected


def test_golden_values(work: Any) -> None:
    path = work.write("fix.patch", PATCH)
    found = keys(work, "golden_patch: {path: fix.patch}\n    golden_trajectory: {inline: {a: [1]}}").clean.stimuli[0]
    assert found.golden_patch == {"path": str(path)}
    assert found.golden_trajectory == {"inline": {"a": [1]}}
    assert found.document["golden_patch"] == {"path": str(path)}
    command = keys(work, "golden_command: {command: c, args: [x], timeout: 5, env: {A: 1}}").stimulus
    assert command.golden_command == {"command": "c", "args": ["x"], "timeout": "5s", "env": {"A": "1"}}
    assert keys(work, "golden_command: make all").stimulus.golden_command == "make all"


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("out/**", None),
        (".cache/{a,b}.txt", None),
        ("[a", "INVALID-GLOB"),
        ("@(a", "INVALID-GLOB"),
        ("*(" * 40 + "a" + ")" * 40, "INVALID-GLOB"),
        ("{" * 1500 + "a" + "}" * 1500, "INVALID-GLOB"),
        ("a/" * 2100, "INVALID-GLOB"),
        ("../a", "INVALID-VALUE"),
        ("/tmp/a", "INVALID-VALUE"),
        (" ", "INVALID-VALUE"),
    ],
)
@pytest.mark.parametrize("key", ["include", "exclude"])
def test_globs_of_artifacts(work: Any, key: str, pattern: str, code: str | None) -> None:
    other = "include: [b], " if key == "exclude" else ""
    found = keys(work, f"artifacts: {{{other}{key}: ['{pattern}']}}").found
    assert found == ([] if code is None else [f"5:{27 + len(other)} {code}"])
