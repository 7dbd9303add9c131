"""The reporter keeps the contract of reporters."""

from __future__ import annotations

from pathlib import Path

import pytest

from vally.testing import Case, reporter_contract
from vally_reporter_jsonl import plugin

(RECORD,) = plugin.vally_reporters()


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{output}-{case.__name__}")
        for output in ("text", "json", "jsonl")
        for case in reporter_contract(RECORD, output=output)
    ],
)
def test_contract(case: Case, tmp_path: Path) -> None:
    case(tmp_path)
