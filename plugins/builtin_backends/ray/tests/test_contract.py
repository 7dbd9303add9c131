"""The backend keeps the contract of backends."""

from __future__ import annotations

from pathlib import Path

import pytest

from vally.testing import Case, backend_contract
from vally_backend_ray import plugin

(RECORD,) = plugin.vally_backends()


@pytest.mark.parametrize("case", backend_contract(RECORD))
def test_contract(case: Case, tmp_path: Path) -> None:
    case(tmp_path)
