"""The backend keeps the contract of backends."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from vally.testing import Case, backend_contract
from vally_backend_sandbox import plugin

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
(RECORD,) = plugin.vally_backends()


@pytest.mark.parametrize("case", backend_contract(RECORD))
def test_contract(case: Case, tmp_path: Path) -> None:
    case(tmp_path)
