"""What every grader must do."""

from __future__ import annotations

from pathlib import Path

import pytest

from vally import GraderSpec, PluginHost
from vally.testing import grader_contract

CONFIGS: dict[str, dict[str, list[dict[str, object]]]] = {
    "no-errors": {"valid": [{}, {"allow_tool_failures": True}], "invalid": [{"allow_tool_failures": "yes"}]},
    "tool-count": {"valid": [{"min": 1}, {"max": 3}, {"min": 0, "max": 2}], "invalid": [{}, {"min": 2, "max": 1}]},
}


@pytest.mark.parametrize("keyword", CONFIGS)
def test_contract(plugins: PluginHost, keyword: str, tmp_path: Path) -> None:
    record = plugins.require("grader", keyword)
    assert isinstance(record, GraderSpec)
    for case in grader_contract(record, **CONFIGS[keyword]):
        place = tmp_path / str(case)
        place.mkdir()
        case(place)
