"""The reporter keeps the contract of reporters."""

from __future__ import annotations

from pathlib import Path

import pytest

from vally.testing import Case, reporter_contract
from vally_reporter_otel import plugin

(RECORD,) = plugin.vally_reporters()


@pytest.mark.parametrize("case", reporter_contract(RECORD))
def test_contract(case: Case, tmp_path: Path) -> None:
    case(tmp_path)
