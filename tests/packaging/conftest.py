"""The wheels of this checkout, and environments made from them."""

from __future__ import annotations

import pytest
from checkout import ROOT
from environments import UV, Environment, Wheels, check, new_environment


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    folder = tmp_path_factory.mktemp("wheels")
    check([*UV, "build", "-q", "--wheel", "--all-packages", "-o", folder, ROOT], ROOT, VALLY_RELEASE="1")
    return Wheels(folder)


@pytest.fixture(scope="session")
def complete(tmp_path_factory: pytest.TempPathFactory, wheels: Wheels) -> Environment:
    """The meta-distribution and all that it requires."""
    environment = new_environment(tmp_path_factory.mktemp("complete"))
    environment.install(*wheels.folder.glob("*.whl"))
    return environment


@pytest.fixture(scope="session")
def kernel_only(tmp_path_factory: pytest.TempPathFactory, wheels: Wheels) -> Environment:
    """The kernel, and the tools its tests need."""
    environment = new_environment(tmp_path_factory.mktemp("kernel"))
    environment.install(wheels.of("vally-kernel"), "pytest", "hypothesis", "packaging", "httpx2")
    return environment
