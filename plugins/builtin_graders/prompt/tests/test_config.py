"""The config of `prompt`, and what the loader of specs says about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vally import ConfigInvalid, Diagnostic, read_eval_spec
from vally.testing import plugin_host

Read = Callable[[str], tuple[Diagnostic, ...]]
HEAD = "name: e\nstimuli:\n  - name: s\n    prompt: p\n"
GOLDEN = '    golden_patch: {inline: "--- a\\n+++ b\\n@@ -1 +1 @@\\n-x\\n+y\\n"}\n'


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        pytest.param(
            {"output_delivery": "inline"},
            "'output_delivery' must be left out: evidence is always delivered as files",
            id="PR-9",
        ),
        ({"prompt": 1}, "'prompt' must be a string"),
        ({"model": " "}, "'model' must not be blank"),
        ({"reasoning_effort": ""}, "'reasoning_effort' must not be blank"),
        ({"scoring": "scale"}, "'scoring' must be 'binary', 'scale_1_5' or 'scale_1_10'"),
        ({"threshold": 1.01}, "'threshold' must be at most 1"),
        ({"threshold": -0.1}, "'threshold' must be at least 0"),
        ({"threshold": "0.5"}, "'threshold' must be a number"),
        ({"evidence": []}, "'evidence' must not be empty"),
        ({"evidence": ["diff", "repo", "diff"]}, "'evidence' names 'diff' twice"),
        ({"evidence": ["files"]}, "'evidence[0]' must be 'trajectory', 'diff', 'golden_patch' or 'repo'"),
        ({"evidence": "diff"}, "'evidence' must be a list"),
        ({"models": ["a"]}, "unknown key 'models'"),
        ({"kinds": ["diff"]}, "unknown key 'kinds'"),
    ],
)
def test_invalid_configs(config: dict[str, Any], problem: str, record: Any) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        plugin_host(record).parse_config(record, config)
    assert str(caught.value) == f"Invalid config for prompt: {problem}"


@pytest.mark.parametrize(
    ("kinds", "evidence", "oracle"),
    [
        (None, set(), "trajectory"),
        (["diff", "trajectory"], {"diff"}, "trajectory"),
        (["golden_patch", "repo"], {"golden_patch", "repo"}, "state"),
    ],
)
def test_what_a_config_needs(kinds: list[str] | None, evidence: set[str], oracle: str, record: Any) -> None:
    config = plugin_host(record).parse_config(record, {} if kinds is None else {"evidence": kinds})
    assert (config.evidence(), record.gradable_with(config)) == (evidence, oracle)


def test_facts(record: Any) -> None:
    assert (record.kind, record.determinism, record.cost, record.reference) == ("llm", "llm", "high", "reference-free")
    assert (record.requires_judge, record.requires_workspace, record.comparable) == (True, False, True)
    assert (record.supports_turn, record.supports_scope, record.temporal_scope) == (True, True, "trajectory-level")


@pytest.fixture
def read(record: Any, tmp_path: Path) -> Read:
    """Reads a spec with one stimulus that has these further lines."""

    def read(text: str) -> tuple[Diagnostic, ...]:
        path = tmp_path / "eval.yaml"
        path.write_text(HEAD + text)
        return read_eval_spec(path, host=plugin_host(record)).diagnostics

    return read


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("    rubric: [a]\n    graders: [{type: prompt}]\n", []),
        ("    graders: [{type: prompt, config: {prompt: x}}]\n", ["prompt-without-rubric"]),
        ("    rubric: [a]\n    graders: [{type: prompt, config: {evidence: [golden_patch]}}]\n",
         ["golden-patch-evidence-missing"]),
        (f"{GOLDEN}    rubric: [a]\n    graders: [{{type: prompt, config: {{evidence: [golden_patch]}}}}]\n", []),
        ("    rubric: [a]\n    graders: []\n", ["no-graders", "rubric-without-llm-judge"]),
        ("    rubric: [a]\n    graders: [{type: prompt, config: {output_delivery: workspace}}]\n",
         ["deprecated-grader-config"]),
        ("    rubric: [a]\n    graders: [{type: prompt, config: {output_delivery: inline}}]\n",
         ["invalid-grader-config"]),
        ("    rubric: [a]\n    graders: [{type: prompt, turn: 0, scope: main}]\n", []),
        ("    rubric: [a]\n    graders: [{type: prompt, turn: 0, config: {evidence: [diff]}}]\n",
         ["invalid-grader-config"]),
        ("    rubric: [a]\n    graders: [{type: prompt, scope: main, config: {evidence: [diff]}}]\n",
         ["invalid-grader-config"]),
        ("    rubric: [a]\n    graders: [{type: prompt, turn: 0, config: {evidence: [repo, golden_patch]}}]\n"
         + GOLDEN, []),
    ],
)  # fmt: skip
def test_diagnostics(text: str, codes: list[str], read: Read) -> None:
    assert sorted(item.code for item in read(text)) == codes


def test_the_words_of_diagnostics(read: Read) -> None:
    (item,) = read("    rubric: [a]\n    graders: [{type: prompt, config: {output_delivery: workspace}}]\n")
    assert (item.message, item.hint) == (
        "prompt: 'output_delivery' is deprecated",
        "leave it out: evidence is always delivered as files",
    )
    (item,) = read("    rubric: [a]\n    graders: [{type: prompt, scope: main, config: {evidence: [diff]}}]\n")
    assert item.message == "Invalid config for prompt: 'scope' is not supported"


@pytest.mark.parametrize(
    ("keyword", "hint"),
    [
        ("pairwise", "grade each run with 'prompt' and compare the runs with 'vally compare'"),
        ("semantic-similarity", "no installed plugin compares meanings; 'prompt' lets a model judge them"),
    ],
)
def test_other_keywords_point_here(read: Read, keyword: str, hint: str) -> None:
    (item,) = read(f"    graders: [{{type: {keyword}}}]\n")
    assert (item.code, item.message) == ("unknown-grader-type", f"unknown grader type '{keyword}'")
    assert item.hint == hint
