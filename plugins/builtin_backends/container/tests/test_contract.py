"""The backend keeps the contract of backends, with a real engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from containers import podman

from vally.testing import Case, backend_contract
from vally_backend_container import plugin

pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("containers")]
RECORD = next(record for record in plugin.vally_backends() if record.name == "container")


@pytest.mark.parametrize("case", backend_contract(RECORD, lambda: podman().args, lambda: podman().env))
def test_contract(case: Case, tmp_path: Path) -> None:
    case(tmp_path)
