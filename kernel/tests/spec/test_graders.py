from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vally.model.evalspec import GraderEntry, Position


def entry(work: Any, text: str, *, stimulus: str = "", **options: Any) -> Any:
    """Load a spec whose one grader entry starts at 2:40, with further stimulus keys after it."""
    return work(f"stimuli:\n  - {{name: abc, prompt: 'p', graders: [{text}]{stimulus}}}\n", **options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{type: completed}", []),
        ("{type: completed, x-note: 1}", []),
        ("{type: completed, config: ~}", []),
        ("{type: completed, config: {}}", []),
        ("completed", ["2:40 INVALID-TYPE"]),
        ("[completed]", ["2:40 INVALID-TYPE"]),
        ("{}", ["2:40 MISSING-KEY"]),
        ("{type: ~}", ["2:40 MISSING-KEY"]),
        ("{type: 5}", ["2:47 INVALID-TYPE"]),
        ("{type: [completed]}", ["2:47 INVALID-TYPE"]),
        ("{type: complete}", ["2:47 UNKNOWN-GRADER-TYPE"]),
        ("{type: completed, config: []}", ["2:66 INVALID-GRADER-CONFIG"]),
        ("{type: completed, config: {path: x}}", ["2:67 INVALID-GRADER-CONFIG"]),
        ("{type: completed, config: {x-note: 1}}", ["2:67 INVALID-GRADER-CONFIG"]),
        ("{type: file-exists}", ["2:40 INVALID-GRADER-CONFIG"]),
        ("{type: file-exists, config: {}}", ["2:68 INVALID-GRADER-CONFIG"]),
        ("{type: file-exists, config: {path: 5}}", ["2:75 INVALID-GRADER-CONFIG"]),
        ("{type: file-exists, config: {path: p, pth: q}}", ["2:78 INVALID-GRADER-CONFIG"]),
        ("{type: file-exists, path: p}", ["2:40 INVALID-GRADER-CONFIG", "2:60 INVALID-GRADER-CONFIG"]),
        ("{type: file-exists, config: {path: p}, negate: true}", ["2:79 INVALID-GRADER-CONFIG"]),
        ("{type: output-contains, config: {substring: ''}}", ["2:84 INVALID-GRADER-CONFIG"]),
        ("{type: output-matches, config: {pattern: '('}}", ["2:81 INVALID-GRADER-CONFIG"]),
        ("{type: skill-invocation, config: {}}", ["2:73 INVALID-GRADER-CONFIG"]),
        ("{type: tool-calls, config: {required: [a, '(']}}", ["2:82 INVALID-GRADER-CONFIG"]),
        ("{type: completed, wieght: 1}", ["2:58 INVALID-GRADER-CONFIG"]),
        ("{type: completed, required: 1}", ["2:68 INVALID-GRADER-CONFIG"]),
        ("{type: completed, required: true}", []),
        ("{type: completed, weight: -1}", ["2:66 INVALID-GRADER-CONFIG"]),
        ("{type: completed, weight: true}", ["2:66 INVALID-GRADER-CONFIG"]),
        ("{type: completed, weight: .inf}", ["2:66 INVALID-GRADER-CONFIG"]),
        ("{type: completed, weight: 0.5}", []),
        ("{type: turn-count, config: {max: .nan}}", ["2:73 INVALID-TYPE"]),
        ("{type: turn-count, config: {max: 9007199254740992}}", ["2:73 INVALID-TYPE"]),
    ],
)
def test_entries(work: Any, text: str, expected: list[str]) -> None:
    assert entry(work, text).found == expected


def test_messages(work: Any) -> None:
    found = entry(work, "{type: file-exists, path: p, config: {}}").diagnostics
    assert [(item.message, item.context) for item in found] == [
        ("Invalid config for file-exists: unknown key 'path', move it under config", "stimulus 'abc', grader 1"),
        ("Invalid config for file-exists: 'path' is required", "stimulus 'abc', grader 1"),
    ]
    item = entry(work, "{type: output-matches, config: {pattern: '('}}").diagnostics[0]
    assert item.message.startswith("Invalid config for output-matches: Invalid regex pattern: (. Error: ")
    assert item.pointer == "/stimuli/0/graders/0/config/pattern"
    item = entry(work, "{type: completed, wieght: 1}").diagnostics[0]
    assert item.hint == "did you mean 'weight'?"


@pytest.mark.parametrize(
    ("keyword", "hint"),
    [
        ("file-exist", "did you mean 'file-exists'?"),
        ("contains", "did you mean 'output-contains'?"),
        ("regex", "did you mean 'output-matches'?"),
        ("pairwise", "use 'prompt' for one run and 'vally compare' for two"),
        ("nothing-like-it", None),
    ],
)
def test_hints_of_unknown_types(work: Any, keyword: str, hint: str | None) -> None:
    item = entry(work, f"{{type: {keyword}}}").only("unknown-grader-type")
    assert (item.message, item.hint) == (f"unknown grader type '{keyword}'", hint)


def test_an_unknown_type_names_plugins_that_failed(work: Any, records: Any, tmp_path: Any) -> None:
    from vally.host import PluginHost

    class Broken:
        @staticmethod
        def factory() -> object:
            raise RuntimeError("no")

    from vally import ExecutorSpec

    host = PluginHost.from_objects(*records, ExecutorSpec(name="broken", summary="breaks", factory=Broken.factory))
    found = work(
        "defaults: {executor: broken}\nstimuli:\n  - {name: a, prompt: p, graders: [{type: completed}]}\n", host=host
    )
    item = found.only("plugin-load-failed")
    assert (item.line, item.column) == (1, 22)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: good-name-1", []),
        ("name: looks good", ["2:64 deprecated-grader-name"]),
        ("name: Upper", ["2:64 deprecated-grader-name"]),
        (f"name: {'x' * 60}", []),
        (f"name: {'x' * 61}", ["2:64 deprecated-grader-name"]),
        ("name: -x", ["2:64 deprecated-grader-name"]),
        ("name: ' '", ["2:64 INVALID-GRADER-CONFIG"]),
        ("name: 5", ["2:64 INVALID-GRADER-CONFIG"]),
        ("name: ~", []),
    ],
)
def test_names(work: Any, text: str, expected: list[str]) -> None:
    assert entry(work, f"{{type: completed, {text}}}").found == expected


def test_a_repeated_name(work: Any) -> None:
    found = entry(work, "{type: completed, name: n}, {type: diff-empty, name: n}")
    assert found.found == ["2:93 DUPLICATE-GRADER-NAME"]
    assert found.diagnostics[0].message == "grader name 'n' is used twice (first at line 2)"
    across = work(
        "stimuli:\n"
        "  - {name: a, prompt: p, graders: [{type: completed, name: n}]}\n"
        "  - {name: b, prompt: p, graders: [{type: completed, name: n}]}\n"
        "  - {name: c, prompt: p, graders: [{type: completed, name: n}]}\n"
    )
    assert across.found == ["3:60 duplicate-grader-name", "4:60 duplicate-grader-name"]
    assert [(note.line, note.column) for note in across.diagnostics[1].related] == [(2, 60)]


@pytest.mark.parametrize("name", ["n", "${N=n}"])
def test_an_entry_that_stimuli_share_is_one_use_of_its_name(work: Any, name: str) -> None:
    shared = work(
        f"stimuli:\n  - {{name: a, prompt: p, graders: &g [{{type: completed, name: '{name}'}}]}}\n"
        "  - {name: b, prompt: p, graders: *g}\n"
    )
    assert [stimulus.graders[0].name for stimulus in shared.clean.stimuli] == ["n", "n"]


@pytest.mark.parametrize("substring", ["x", "'${row.answer}'"])
def test_a_template_uses_its_grader_names_once(work: Any, substring: str) -> None:
    work.write("rows.jsonl", '{"answer": "a"}\n{"answer": "b"}\n')
    grader = f"{{type: output-contains, name: n, config: {{substring: {substring}}}}}"
    assert work(f"stimuli_from: {{file: rows.jsonl, template: {{prompt: p, graders: [{grader}]}}}}\n").found == []


def test_a_name_of_the_root_is_in_every_list(work: Any) -> None:
    found = work(
        "graders: [{type: completed, name: n}]\nstimuli:\n"
        "  - {name: a, prompt: p}\n  - {name: b, prompt: p, graders: [{type: diff-empty, name: n}]}\n"
    )
    assert found.found == ["4:61 DUPLICATE-GRADER-NAME"]


# turn and scope


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{type: completed, turn: 1}", []),
        ("{type: completed, turn: 2}", ["2:64 INVALID-GRADER-CONFIG"]),
        ("{type: completed, turn: -1}", ["2:64 INVALID-GRADER-CONFIG"]),
        ("{type: completed, turn: 0.0}", ["2:64 INVALID-GRADER-CONFIG"]),
        ("{type: completed, turn: true}", ["2:64 INVALID-GRADER-CONFIG"]),
        ("{type: file-exists, config: {path: x}, turn: 0}", ["2:85 INVALID-GRADER-CONFIG"]),
        ("{type: file-exists, config: {path: x}, scope: main}", ["2:86 INVALID-GRADER-CONFIG"]),
        ("{type: diff-empty, turn: 0}", []),
        ("{type: diff-empty, scope: main}", ["2:66 INVALID-GRADER-CONFIG"]),
        ("{type: diff-empty, scope: all}", []),
        ("{type: prompt, turn: 0, scope: main}", []),
        ("{type: prompt, turn: 0, config: {evidence: [diff]}}", ["2:61 INVALID-GRADER-CONFIG"]),
        ("{type: prompt, scope: main, config: {evidence: [trajectory, diff]}}", ["2:62 INVALID-GRADER-CONFIG"]),
        ("{type: completed, scope: reviewer}", []),
        ("{type: completed, scope: {agent: r}}", []),
        ("{type: completed, scope: {agent: [r, s]}}", []),
        ("{type: completed, scope: {agent: []}}", ["2:65 INVALID-GRADER-CONFIG"]),
        ("{type: completed, scope: {agent: ''}}", ["2:65 INVALID-GRADER-CONFIG"]),
        ("{type: completed, scope: {}}", ["2:65 INVALID-GRADER-CONFIG"]),
        ("{type: completed, scope: {agents: r}}", ["2:66 INVALID-GRADER-CONFIG"]),
        ("{type: completed, scope: ''}", ["2:65 INVALID-GRADER-CONFIG"]),
        ("{type: completed, scope: [r]}", ["2:65 INVALID-GRADER-CONFIG"]),
    ],
)
def test_turn_and_scope(work: Any, text: str, expected: list[str]) -> None:
    text = f"stimuli:\n  - {{name: ab, turns: [q,r], graders: [{text}]}}\n"
    assert [item for item in work(text).found if "prompt-without-rubric" not in item] == expected


def test_what_is_not_supported(work: Any) -> None:
    item = entry(work, "{type: file-exists, config: {path: x}, turn: 0}").only("invalid-grader-config")
    assert item.message == "Invalid config for file-exists: 'turn' is not supported"


def test_the_turn_of_a_root_grader_must_exist_everywhere(work: Any) -> None:
    found = work(
        "graders: [{type: completed, turn: 1}]\nstimuli:\n"
        "  - {name: a, turns: [x, y]}\n  - {name: b, prompt: p}\n  - {name: c, turns: [x]}\n"
    )
    assert found.found == ["1:35 INVALID-GRADER-CONFIG"]
    item = found.diagnostics[0]
    assert item.message.endswith("'turn' must be less than 1, the stimulus has 1 turn")
    assert item.context == "stimulus 'b', grader 1"


# Values


def test_values(work: Any) -> None:
    text = "{type: file-exists, name: n, config: {path: x}, required: true, weight: 2}"
    (found,) = entry(work, text).clean.stimuli[0].graders
    assert found == GraderEntry(
        type="file-exists",
        config={"path": "x"},
        name="n",
        required=True,
        weight=2.0,
        position=Position(file="eval.yaml", line=2, column=40),
        pointer="/stimuli/0/graders/0",
    )
    scoped = entry(work, "{type: completed, turn: 0, scope: {agent: [r]}}").clean.stimuli[0].graders[0]
    assert (scoped.turn, scoped.scope) == (0, {"agent": ["r"]})


def test_no_graders(work: Any) -> None:
    assert work("stimuli:\n  - {name: a, prompt: p}\n").found == ["2:5 no-graders"]
    assert work("stimuli:\n  - {name: a, prompt: p, graders: []}\n").found == ["2:5 no-graders"]
    assert work.stimulus("constraints: {expect_tools: [], max_turns: ~}").found == ["2:5 no-graders"]
    # A check that is written wrong is still meant to be one.
    assert work.stimulus("constraints: {max_turns: -1}").found == ["4:30 INVALID-CONSTRAINT-VALUE"]
    assert work.stimulus("constraints: {max_turn: 1}").found == ["2:5 no-graders", "4:19 UNKNOWN-KEY"]
    assert work("stimuli:\n  - {name: a, prompt: p, graders: {}}\n").found == ["2:35 INVALID-TYPE"]
    assert work("graders: [{type: completed}]\nstimuli:\n  - {name: a, prompt: p}\n").found == []
    assert work("stimuli:\n  - {name: a, prompt: p, constraints: {max_turns: 1}}\n").found == []


# What graders read


@pytest.mark.parametrize(
    ("text", "stimulus", "expected"),
    [
        ("{type: prompt}", "", ["2:40 prompt-without-rubric"]),
        ("{type: prompt}", ", rubric: [r]", []),
        ("{type: prompt, config: {criteria: [c]}}", "", []),
        ("{type: completed}", ", rubric: [r]", ["2:68 rubric-without-llm-judge"]),
        ("{type: unknown-one}", ", rubric: [r]", ["2:47 UNKNOWN-GRADER-TYPE"]),
        (
            "{type: prompt, config: {evidence: [golden_patch]}}",
            ", rubric: [r]",
            ["2:40 golden-patch-evidence-missing"],
        ),
        (
            "{type: prompt, config: {evidence: [golden_patch]}}",
            ', rubric: [r], golden_patch: {inline: "diff --git a/x b/x\\n"}',
            [],
        ),
        ("{type: prompt, config: {output_delivery: workspace}}", ", rubric: [r]", ["2:64 deprecated-grader-config"]),
    ],
)
def test_what_graders_read(work: Any, text: str, stimulus: str, expected: list[str]) -> None:
    assert entry(work, text, stimulus=stimulus).found == expected


def test_a_deprecated_key(work: Any) -> None:
    text = "{type: prompt, config: {output_delivery: workspace}}"
    item = entry(work, text, stimulus=", rubric: [r]").only("deprecated-grader-config")
    assert (item.message, item.hint) == ("prompt: 'output_delivery' is deprecated", "it has no effect")


def test_what_a_config_warns_of(work: Any) -> None:
    found = entry(work, "{type: turn-count, config: {max: 1001}}")
    assert found.found == ["2:73 suspicious-grader-config"]
    assert found.diagnostics[0].message == "turn-count: 'max' is so high that it says nothing"
    assert found.diagnostics[0].level == "warning"


@pytest.mark.parametrize("pattern", [".", ".+", ".*", r"\S", r"\S+", r"[\s\S]*", r"[\s\S]+", "(?i).*"])
def test_patterns_that_match_any_text(work: Any, pattern: str) -> None:
    found = entry(work, f"{{type: output-matches, config: {{pattern: '{pattern}'}}}}")
    assert found.found == ["2:81 suspicious-pattern"]
    assert found.diagnostics[0].message == f"pattern '{pattern}' matches any text"
    assert found.diagnostics[0].level == "info"
    assert entry(work, f"{{type: output-matches, config: {{pattern: '{pattern}x'}}}}").found == []


def test_doubled_backslashes_in_single_quotes(work: Any) -> None:
    found = entry(work, r"{type: output-matches, config: {pattern: 'a\\b'}}")
    assert [(item.code, item.message) for item in found.diagnostics] == [
        ("suspicious-pattern", r"'\\' in single quotes is two characters")
    ]
    assert entry(work, r'{type: output-matches, config: {pattern: "a\\b"}}').found == []


def test_a_plugin_whose_config_cannot_be_imported(work: Any, make_host: Callable[..., Any]) -> None:
    from vally import GraderSpec

    broken = GraderSpec(name="broken", summary="breaks", factory=object, config="no_such_module:Config")
    found = entry(work, "{type: broken}", host=make_host(broken))
    assert found.found == ["2:47 PLUGIN-LOAD-FAILED"]


# Scoring


def scored(work: Any, scoring: str, *graders: str) -> Any:
    """Load a spec with scoring in line 1 and one stimulus per graders list."""
    stimuli = "".join(f"  - {{name: s{n}, prompt: p, graders: [{item}]}}\n" for n, item in enumerate(graders))
    return work(f"scoring: {scoring}\nstimuli:\n{stimuli}")


@pytest.mark.parametrize(
    ("scoring", "expected"),
    [
        ("{}", []),
        ("{threshold: 0.8, pass_rate: 1, timeout: 2m}", []),
        ("{threshold: 1.1}", ["1:22 INVALID-VALUE"]),
        ("{threshold: '0.8'}", ["1:22 INVALID-TYPE"]),
        ("{threshold: true}", ["1:22 INVALID-TYPE"]),
        ("{pass_rate: -0.1}", ["1:22 INVALID-VALUE"]),
        ("{timeout: 0ms}", ["1:20 INVALID-DURATION"]),
        ("{timeout: 30}", ["1:20 bare-duration"]),
        ("{treshold: 1}", ["1:11 UNKNOWN-KEY"]),
        ("{weights: [1]}", ["1:20 INVALID-TYPE"]),
        ("{weights: {completed: -1}}", ["1:32 INVALID-VALUE"]),
        ("{weights: {completed: x}}", ["1:32 INVALID-TYPE"]),
        ("{weights: {}}", []),
        ("{weights: {completed: 2}}", []),
        ("{weights: {completd: 2}}", ["1:21 INVALID-SCORING-WEIGHT-KEY"]),
        ("{weights: {diff-empty: 2, completed: 2}}", ["1:21 unused-scoring-weight"]),
        ("{weights: {completed: 0}}", ["1:21 SCORING-WEIGHTS-ZERO"]),
        ("{weights: {completed: 0, diff-empty: 0}}", ["1:21 SCORING-WEIGHTS-ZERO", "1:35 unused-scoring-weight"]),
        ("{weights: {completed: 1, constraints.max_turns: 1}}", ["1:35 unused-scoring-weight"]),
        ("{weights: {completed: 1, constraints.max_trns: 1}}", ["1:35 INVALID-SCORING-WEIGHT-KEY"]),
    ],
)
def test_scoring(work: Any, scoring: str, expected: list[str]) -> None:
    assert scored(work, scoring, "{type: completed}").found == expected


def test_scoring_values(work: Any) -> None:
    scoring = scored(work, "{weights: {completed: 2}, threshold: 0.5, pass_rate: 1, timeout: 90}", "{type: completed}")
    read = scoring.spec.scoring
    assert (dict(read.weights), read.threshold, read.pass_rate) == ({"completed": 2.0}, 0.5, 1.0)
    assert (read.timeout_ms, read.timeout_text) == (90_000, "90s")
    assert scoring.spec.document["scoring"] == {
        "weights": {"completed": 2.0},
        "threshold": 0.5,
        "pass_rate": 1.0,
        "timeout": "90s",
    }


def test_hints_of_weight_keys(work: Any) -> None:
    item = scored(work, "{weights: {greet: 1}}", "{type: completed, name: greets}").only("invalid-scoring-weight-key")
    assert item.hint == "did you mean 'greets'?"
    assert item.message == "scoring.weights: no grader type or name 'greet'"


def test_two_unnamed_graders_of_a_weighted_type(work: Any) -> None:
    found = scored(work, "{weights: {completed: 2}}", "{type: completed}, {type: completed}", "{type: completed}")
    assert found.found == ["3:56 duplicate-grader-type-in-stimulus"]
    named = scored(work, "{weights: {completed: 2}}", "{type: completed}, {type: completed, name: n}")
    assert named.found == []
    assert scored(work, "{weights: {diff-empty: 2}}", "{type: completed}, {type: completed}").codes == [
        "unused-scoring-weight"
    ]


def test_a_name_that_is_a_type(work: Any) -> None:
    found = scored(work, "{weights: {diff-empty: 2}}", "{type: completed, name: diff-empty}")
    assert found.found == ["1:21 ambiguous-scoring-weight-key"]
    assert scored(work, "{}", "{type: completed, name: diff-empty}").found == []


def test_unlisted_graders_beside_weights_that_sum_to_one(work: Any) -> None:
    two = "{type: completed}, {type: diff-empty}"
    found = scored(work, "{weights: {completed: 0.995}}", two, two)
    assert found.found == ["3:63 unlisted-grader-weight"]
    assert found.diagnostics[0].message == "'diff-empty' is not in scoring.weights and weighs 1"
    assert scored(work, "{weights: {completed: 0.9}}", two).found == []
    assert scored(work, "{weights: {completed: 1}}", "{type: completed}, {type: diff-empty, weight: 1}").found == []
    constrained = work(
        "scoring: {weights: {completed: 1}}\nstimuli:\n"
        "  - {name: a, prompt: p, graders: [{type: completed}], constraints: {max_turns: 1}}\n"
    )
    assert constrained.found == []


def test_a_weight_for_a_constraint(work: Any) -> None:
    found = work(
        "scoring: {weights: {completed: 1, constraints.max_turns: 1}}\nstimuli:\n"
        "  - {name: a, prompt: p, graders: [{type: completed}], constraints: {max_turns: 1}}\n"
    )
    assert found.found == []
