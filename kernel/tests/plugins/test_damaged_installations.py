"""Installations that are not as an installer leaves them."""

from __future__ import annotations

import sys

import pytest
from plugin_sites import Site, host, names, write_files


@pytest.fixture
def damaged(site: Site) -> Site:
    site.grader("fine", "1.0", "good", module="fine_plugin")
    return site


def test_a_distribution_without_metadata(damaged: Site) -> None:
    damaged.distribution("lost", "1.0", graders={"x": "no_such_module"})
    (damaged.path / "lost-1.0.dist-info" / "METADATA").unlink()
    plugins = host()
    assert names(plugins) == ["good"]
    assert plugins.warnings() == ["plugin 'x' of unknown cannot be used: No module named 'no_such_module'"]


@pytest.mark.parametrize("value", ["not a module!", "pkg:", "", "1abc.def"])
def test_an_entry_point_that_makes_no_sense(damaged: Site, value: str) -> None:
    damaged.distribution("odd", "1.0", graders={"x": value})
    plugins = host()
    assert names(plugins) == ["good"]
    assert [failure.label for failure in plugins.failures("grader")] == ["x"]


def test_a_line_without_a_value(damaged: Site) -> None:
    damaged.distribution("odd", "1.0", graders={"x": "y"})
    (damaged.path / "odd-1.0.dist-info" / "entry_points.txt").write_text("[vally.graders]\njust words\n")
    assert names(host()) == ["good"]


def test_the_first_of_two_copies_counts(damaged: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Site(damaged.path.parent / "second")
    other.grader("fine", "2.0", "newer", module="newer_plugin")
    monkeypatch.setattr(sys, "path", [str(other.path), *sys.path])
    plugins = host()
    assert (names(plugins), plugins.version(plugins.require("grader", "newer"))) == (["newer"], "2.0")


def test_extras_of_an_entry_point_are_ignored(site: Site) -> None:
    site.distribution("extra", "1.0", graders={"x": "extra_mod [fast]"})
    write_files(
        site.path,
        {"extra_mod.py": "from vally import GraderSpec\nX = GraderSpec(name='x', summary='fine', factory=dict)\n"},
    )
    assert names(host()) == ["x"]
