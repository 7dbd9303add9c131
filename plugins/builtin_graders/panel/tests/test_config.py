"""The config of `panel`, and what the loader of specs says about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally import ConfigInvalid, read_eval_spec
from vally.testing import plugin_host


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({}, "'models' is required"),
        ({"models": []}, "'models' must not be empty"),
        ({"models": [1]}, "'models[0]' must be a string or a mapping"),
        ({"models": [" "]}, "'models' must not be blank"),
        ({"models": [{"model": "a", "effort": "low"}]}, "unknown key 'models[0].effort'"),
        ({"models": ["a"], "model": "b"}, "unknown key 'model'"),
        ({"models": ["a"], "aggregation": "max"}, "'aggregation' must be 'mean', 'median', 'majority', 'min' or 'unan"),
        ({"models": ["a"], "criteria": []}, "'criteria' must not be empty"),
        ({"models": ["a"], "criteria": ["x"]}, "'criteria[0]' must be a mapping"),
        ({"models": ["a"], "criteria": [{"name": "x"}, {"name": "x"}]}, "'criteria' names 'x' twice"),
        ({"models": ["a"], "criteria": [{"name": "x", "weight": -1}]}, "'criteria[0].weight' must be at least 0"),
        (
            {"models": ["a"], "criteria": [{"name": "x", "weight": 0}]},
            "'criteria' must have at least one positive 'weight'",
        ),
        (
            {"models": ["a"], "criteria": [{"name": "x", "pass_threshold": 2}]},
            "'criteria[0].pass_threshold' must be at most 1",
        ),
        ({"models": ["a"], "overall_threshold": 2}, "'overall_threshold' must be at most 1"),
        (
            {"models": ["a"], "overall_threshold": 1, "threshold": 1},
            "'threshold' and 'overall_threshold' are the same: give one of them",
        ),
        (
            {"models": ["a"], "output_delivery": "inline"},
            "'output_delivery' must be left out: evidence is always delivered as files",
        ),
    ],
)
def test_invalid_configs(config: dict[str, Any], problem: str, record: Any) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        plugin_host(record).parse_config(record, config)
    assert str(caught.value).startswith(f"Invalid config for panel: {problem}")


def test_what_a_config_needs(record: Any) -> None:
    parse = plugin_host(record).parse_config
    assert parse(record, {"models": "a"}).evidence() == set()
    config = parse(record, {"models": "a", "evidence": ["diff", "repo"]})
    assert (config.evidence(), record.gradable_with(config)) == ({"diff", "repo"}, "state")


def test_facts(record: Any) -> None:
    assert (record.kind, record.determinism, record.cost, record.reference) == ("llm", "llm", "high", "reference-free")
    assert (record.requires_judge, record.requires_workspace, record.comparable) == (True, False, False)
    assert (record.supports_turn, record.supports_scope) == (True, True)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("graders: [{type: panel, config: {models: a}}]", ["prompt-without-rubric"]),
        ("graders: [{type: panel, config: {models: a, criteria: [{name: x}]}}]", []),
        ("rubric: [x]\n    graders: [{type: panel, config: {models: [a, {model: b}]}}]", []),
        (
            "rubric: [x]\n    graders: [{type: panel, config: {models: a, overall_threshold: 1, "
            "output_delivery: workspace}}]",
            ["deprecated-grader-config", "deprecated-grader-config"],
        ),
        (
            "rubric: [x]\n    graders: [{type: panel, config: {models: a, evidence: [golden_patch]}}]",
            ["golden-patch-evidence-missing"],
        ),
        ("rubric: [x]\n    graders: [{type: panel, scope: sub, config: {models: a, evidence: [diff]}}]",
         ["invalid-grader-config"]),
        ("rubric: [x]\n    graders: [{type: panel}]", ["invalid-grader-config"]),
    ],
)  # fmt: skip
def test_diagnostics(text: str, codes: list[str], record: Any, tmp_path: Path) -> None:
    path = tmp_path / "eval.yaml"
    path.write_text(f"name: e\nstimuli:\n  - name: s\n    prompt: p\n    {text}\n")
    assert [item.code for item in read_eval_spec(path, host=plugin_host(record)).diagnostics] == codes
