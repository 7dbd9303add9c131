"""Which plugin API and which kernel a plugin was written for."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugin_sites import Site, host, names, problem, provider, write_files

import vally

RANGES = {
    "vally-kernel>=0,<99": None,
    "vally-kernel": None,
    "vally_kernel (>=0)": None,
    "vally-kernel[extra]>=0 ; python_version >= '3'": None,
    "vally-kernel>=2,<3": f"needs vally-kernel >=2,<3, this is {vally.__version__}",
    "Vally.Kernel >= 2": f"needs vally-kernel >= 2, this is {vally.__version__}",
    "vally-kernel-extras>=2": None,
    "vally-kernel=>2": "its requirement 'vally-kernel =>2' is not valid",
}


@pytest.mark.parametrize("requirement", RANGES)
def test_the_requirement_decides_when_the_module_says_nothing(site: Site, requirement: str) -> None:
    files = {"mod.py": provider("x", api=None)}
    site.distribution("acme", "1.0", graders={"a": "mod"}, requires=["other", requirement], files=files)
    plugins = host()
    expected = RANGES[requirement]
    assert [failure.reason for failure in plugins.failures("grader")] == ([expected] if expected else [])
    assert names(plugins) == ([] if expected else ["x"])


def test_the_module_overrules_the_requirement(site: Site) -> None:
    files = {"mod.py": provider("x", api=1)}
    site.distribution("acme", "1.0", graders={"a": "mod"}, requires=["vally-kernel>=2"], files=files)
    assert names(host()) == ["x"]


def test_without_both_version_1_is_assumed(site: Site, work: Path) -> None:
    write_files(work, {"x.py": provider("x", api=None)})
    assert names(host(("grader", "./x.py"), cwd=work)) == ["x"]


def test_an_unmet_requirement_explains_a_failed_import(site: Site) -> None:
    files = {"mod.py": "from vally import SomethingOfVersion2\n"}
    site.distribution("acme", "1.0", graders={"a": "mod"}, requires=["vally-kernel>=2,<3"], files=files)
    (failure,) = host().failures("grader")
    assert failure.reason == f"needs vally-kernel >=2,<3, this is {vally.__version__}"


def test_the_requirement_of_a_project_directory(site: Site, work: Path) -> None:
    pyproject = """\
        [project]
        name = "acme"
        version = "1.0"
        dependencies = ["vally-kernel>=2,<3"]
        [project.entry-points."vally.graders"]
        a = "mod"
        """
    write_files(work / "acme", {"pyproject.toml": pyproject, "mod.py": provider("x", api=None)})
    expected = f"plugin './acme': needs vally-kernel >=2,<3, this is {vally.__version__}"
    assert problem(host(("grader", "./acme"), cwd=work)) == expected


def test_the_version_is_public() -> None:
    assert vally.API_VERSION == 1
