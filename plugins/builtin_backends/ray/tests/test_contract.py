"""The backend keeps the contract of backends, on a cluster that is there already."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ray_clusters import RayCluster, ray_cluster

from vally.testing import backend_contract
from vally_backend_ray import plugin

pytest.importorskip("ray")
pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("ray")]
(RECORD,) = plugin.vally_backends()
NAMES = [str(case) for case in backend_contract(RECORD)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster() as running:
        yield running


@pytest.mark.parametrize("name", NAMES)
def test_contract(name: str, cluster: RayCluster, tmp_path: Path) -> None:
    cases = backend_contract(RECORD, {"address": cluster.address, "slots": "5"}, cluster.env)
    next(case for case in cases if str(case) == name)(tmp_path)
