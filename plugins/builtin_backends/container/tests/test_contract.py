"""The backend keeps the contract of backends."""

from __future__ import annotations

from pathlib import Path

import pytest

from vally.testing import Case, backend_contract
from vally_backend_container import plugin

RECORD = next(record for record in plugin.vally_backends() if record.name == "podman")


@pytest.mark.parametrize(
    "case",
    backend_contract(
        RECORD,
        {"image": "vally-test:1"},
        {"CONTAINERS_CONF": "/tmp/container/containers.conf", "CONTAINERS_STORAGE_CONF": "/tmp/container/storage.conf"},
    ),
)
def test_contract(case: Case, tmp_path: Path) -> None:
    case(tmp_path)
