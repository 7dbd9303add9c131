"""`output-matches` and `output-not-matches`."""

from __future__ import annotations

from typing import Any

import pytest

from vally import ConfigInvalid, GraderSpec, PluginHost
from vally.testing import grade, trajectory
from vally_grader_output import plugin

RECORDS: dict[str, GraderSpec] = {record.name: record for record in plugin.vally_graders()}


@pytest.mark.parametrize(
    ("keyword", "config", "output", "passed", "evidence"),
    [
        pytest.param(
            "output-matches",
            {"pattern": r"function\s+\w+\("},
            "function add(a)",
            True,
            r"Output matches pattern /function\s+\w+\(/",
            id="OM-1",
        ),
        pytest.param(
            "output-matches",
            {"pattern": "^done$"},
            "all done",
            False,
            "Output does not match pattern /^done$/",
            id="OM-2",
        ),
        pytest.param(
            "output-matches", {"pattern": "(?i)DONE"}, "done", True, "Output matches pattern /(?i)DONE/", id="OM-3"
        ),
        pytest.param(
            "output-not-matches",
            {"pattern": "TODO"},
            "finished",
            True,
            "Output does not match pattern /TODO/",
            id="OM-4",
        ),
        pytest.param(
            "output-matches", {"pattern": "(?m)^2$"}, "1\n2\n3", True, "Output matches pattern /(?m)^2$/", id="OM-6"
        ),
        pytest.param(
            "output-matches", {"pattern": "a", "negate": True}, "a", False, "Output matches pattern /a/", id="negate"
        ),
    ],
)
def test_table(keyword: str, config: dict[str, Any], output: str, passed: bool, evidence: str) -> None:
    result = grade(RECORDS[keyword], config, trajectory(output=output))
    assert (result.passed, result.score, result.evidence, result.metadata) == (passed, float(passed), evidence, None)


@pytest.mark.parametrize("keyword", ["output-matches", "output-not-matches"])
def test_an_invalid_pattern_fails_even_when_negated(keyword: str) -> None:
    """OM-5 and RX-7."""
    result = grade(RECORDS[keyword], {"pattern": "[bad"}, trajectory(output="x"))
    assert (result.passed, result.status, result.label) == (False, None, "incorrect")
    assert result.evidence.startswith("Invalid regex pattern: [bad. Error: ")


@pytest.mark.parametrize("pattern", ["[bad", "", "(?i)", "x(?i)y"])
def test_an_invalid_pattern_is_refused_when_the_spec_is_loaded(pattern: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        PluginHost.from_objects(plugin).parse_config(RECORDS["output-matches"], {"pattern": pattern})
    assert str(caught.value).startswith(f"Invalid config for output-matches: Invalid regex pattern: {pattern}. Error: ")


def test_a_slow_pattern_is_an_error() -> None:
    """RX-9."""
    result = grade(RECORDS["output-matches"], {"pattern": "^(a+)+$"}, trajectory(output="a" * 40 + "b"))
    assert (result.status, result.label, result.evidence) == ("error", None, "Regex timed out after 5s: /^(a+)+$/")
    assert result.metadata == {"error": {"kind": "regex-timeout", "message": "Regex timed out after 5s: /^(a+)+$/"}}


def test_names() -> None:
    """NM-5: sixty characters in all."""
    result = grade(RECORDS["output-matches"], {"pattern": "x" * 100}, trajectory(output=""))
    assert result.name == "output-matches " + "x" * 44 + "…"


@pytest.mark.parametrize(("keyword", "absence"), [("output-matches", False), ("output-not-matches", True)])
def test_asserts_absence(keyword: str, absence: bool) -> None:
    host, record = PluginHost.from_objects(plugin), RECORDS[keyword]
    assert host.create(record).asserts_absence(host.parse_config(record, {"pattern": "x"})) is absence
