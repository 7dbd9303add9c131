"""The backends keep the contract of backends, with real engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from containers import Engine, docker, podman

from vally.testing import backend_contract
from vally_backend_container import plugin

pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("containers")]
RECORDS = {record.name: record for record in plugin.vally_backends()}
NAMES = [str(case) for case in backend_contract(RECORDS["container"])]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Engine]:
    with docker() as engine:
        yield engine


def keep(name: str, backend: str, engine: Engine, directory: Path) -> None:
    cases = backend_contract(RECORDS[backend], engine.args, engine.env)
    next(case for case in cases if str(case) == name)(directory)


@pytest.mark.parametrize("name", NAMES)
def test_contract_with_podman(name: str, tmp_path: Path) -> None:
    keep(name, "container", podman(), tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_contract_with_docker(name: str, daemon: Engine, tmp_path: Path) -> None:
    keep(name, "docker", daemon, tmp_path)
