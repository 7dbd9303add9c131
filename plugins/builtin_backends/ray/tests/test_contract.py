"""The backend keeps the contract of backends, on a cluster that is there already."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ray_clusters import RayCluster, ray_cluster

from vally.testing import Case, backend_contract
from vally_backend_ray import plugin

pytest.importorskip("ray")
pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("ray")]
(RECORD,) = plugin.vally_backends()
CLUSTERS: list[RayCluster] = []


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with ray_cluster() as running:
        CLUSTERS.append(running)
        yield
        CLUSTERS.clear()


CASES = backend_contract(RECORD, lambda: {"address": CLUSTERS[0].address, "slots": "5"}, lambda: CLUSTERS[0].env)


@pytest.mark.parametrize("case", CASES)
def test_contract(case: Case, tmp_path: Path) -> None:
    case(tmp_path)
