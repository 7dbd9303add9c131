"""`tool-count`."""

from __future__ import annotations

import pytest

from vally import ConfigInvalid, PluginHost
from vally.testing import event, grade, trajectory


@pytest.mark.parametrize(
    ("count", "config", "passed", "words"),
    [
        (0, {"max": 0}, True, "at most 0"),
        (1, {"max": 0}, False, "at most 0"),
        (2, {"min": 2}, True, "at least 2"),
        (1, {"min": 2}, False, "at least 2"),
        (3, {"min": 1, "max": 3}, True, "1 to 3"),
        (4, {"min": 1, "max": 3}, False, "1 to 3"),
    ],
)
def test_bounds(plugins: PluginHost, count: int, config: dict[str, int], passed: bool, words: str) -> None:
    calls = [event("tool_call", tool_name="bash", tool_call_id=str(number)) for number in range(count)]
    result = grade("tool-count", config, trajectory(*calls), host=plugins)
    assert (result.passed, result.evidence) == (passed, f"{count} tool calls (expected {words})")
    assert result.name == f"tool-count {words}"


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({}, "'min' or 'max' is required"),
        ({"min": 3, "max": 1}, "'min' must not be greater than 'max'"),
        ({"min": -1}, "'min' must be at least 0"),
        ({"min": "1"}, "'min' must be an integer"),
        ({"most": 1}, "unknown key 'most'"),
    ],
)
def test_configs_that_are_refused(plugins: PluginHost, config: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        plugins.parse_config(plugins.require("grader", "tool-count"), config)
    assert list(caught.value.problems) == [problem]
