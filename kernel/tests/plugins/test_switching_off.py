"""Leaving installed plugins out."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugin_sites import Site, host, names, problem, provider, write_files

LEAVES_A_MARK = "import pathlib\npathlib.Path(__file__).with_name('imported').touch()\n"


@pytest.fixture
def three(site: Site) -> Site:
    site.distribution("vally", "1.2.0", requires=["vally-grader-files==1.2.0", "vally-grader-extra; extra == 'more'"])
    site.grader("vally-grader-files", "1.2.0", "built-in", module="files_mod")
    site.grader("vally-grader-extra", "1.2.0", "of-extra", module="extra_mod")
    files = {"third_mod.py": LEAVES_A_MARK + provider("third-party")}
    site.distribution("acme", "1.0", graders={"acme": "third_mod"}, requires=["vally-grader-files"], files=files)
    return site


def test_built_in_is_what_the_meta_distribution_requires(three: Site) -> None:
    sources = {row.name: row.source for row in host().listing(["grader"])}
    assert sources == {"built-in": "built in", "of-extra": "built in", "third-party": "entry point acme"}


def test_built_in_is_not_transitive(site: Site) -> None:
    site.distribution("vally", "1.0", requires=["middle"])
    site.distribution("middle", "1.0", requires=["vally-grader-x"])
    site.grader("vally-grader-x", "1.0", "x", module="x_mod")
    assert [row.source for row in host().listing(["grader"])] == ["entry point vally-grader-x"]


def test_nothing_is_built_in_without_the_meta_distribution(site: Site) -> None:
    site.grader("vally-grader-x", "1.0", "x", module="x_mod")
    assert names(host(no_plugins=True)) == []


def test_no_plugins_leaves_third_parties_out(three: Site) -> None:
    plugins = host(no_plugins=True)
    assert names(plugins) == ["built-in", "of-extra"]
    assert not (three.path / "imported").exists()
    assert [(row.name, row.status) for row in plugins.listing(["grader"])] == [
        ("acme", "disabled"),
        ("built-in", "ok"),
        ("of-extra", "ok"),
    ]


def test_explicit_plugins_still_load(three: Site, work: Path) -> None:
    write_files(work, {"x.py": provider("from-file")})
    plugins = host(("grader", "./x.py"), ("grader", "acme"), cwd=work, no_plugins=True)
    assert names(plugins) == ["built-in", "from-file", "of-extra", "third-party"]
    assert "disabled" not in {row.status for row in plugins.listing(["grader"])}


@pytest.mark.parametrize("name", ["acme", "ACME"])
def test_no_plugin_leaves_one_distribution_out_before_it_is_imported(three: Site, name: str) -> None:
    plugins = host(no_plugin=(name,))
    assert names(plugins) == ["built-in", "of-extra"]
    assert not (three.path / "imported").exists()
    assert plugins.warnings() == []
    assert {row.name: row.status for row in plugins.listing(["grader"])}["acme"] == "disabled"


def test_a_built_in_can_be_left_out_too(three: Site) -> None:
    assert names(host(no_plugin=("vally-grader-files",))) == ["of-extra", "third-party"]


def test_leaving_out_what_is_not_there_is_a_warning(three: Site) -> None:
    plugins = host(no_plugin=("acmee",))
    assert names(plugins) == ["built-in", "of-extra", "third-party"]
    told = "no installed distribution of that name provides plugins"
    assert plugins.warnings() == [f"--no-plugin acmee: {told}; did you mean 'acme'?"]
    plugins = host(no_plugin=("zebra",))
    assert len(names(plugins)) == 3
    assert plugins.warnings() == [f"--no-plugin zebra: {told}"]


def test_naming_what_is_left_out(three: Site, work: Path) -> None:
    plugins = host(("grader", "acme"), cwd=work, no_plugin=("acme",))
    assert problem(plugins) == "plugin 'acme': acme is left out by --no-plugin"


def test_no_kind_is_loaded_before_it_is_asked_for(three: Site) -> None:
    plugins = host()
    assert names(plugins, "executor") == []
    assert not (three.path / "imported").exists()
    assert names(plugins, "grader")
    assert (three.path / "imported").exists()
