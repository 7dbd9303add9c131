"""Names and specifiers that mean exactly one record, as `--backend` and `--exporter` take them."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugin_sites import Site, host, provider, write_files

from vally import PluginError, PluginHost


@pytest.fixture
def plugins(site: Site, work: Path) -> PluginHost:
    files = {"backend_mod.py": provider("local", "far", kind="backend")}
    site.distribution("backends", "1.0", groups={"vally.backends": {"entry": "backend_mod"}}, files=files)
    write_files(work, {"x.py": provider("own", kind="backend"), "two.py": provider("b", "a", kind="backend")})
    write_files(work / "local", {"plugin.py": provider("dir", kind="backend")})
    return host(cwd=work)


@pytest.mark.parametrize(("text", "name"), [("local", "local"), ("./x.py", "own"), ("x.py", "own"), ("./local", "dir")])
def test_one(plugins: PluginHost, text: str, name: str) -> None:
    assert plugins.resolve_one("backend", text).name == name
    assert plugins.require("backend", name).name == name


def test_the_same_one_twice(plugins: PluginHost) -> None:
    assert plugins.resolve_one("backend", "./x.py") == plugins.resolve_one("backend", "./x.py")


@pytest.mark.parametrize(("text", "found"), [("./two.py", "a, b"), ("entry", "far, local"), ("backends", "far, local")])
def test_several(plugins: PluginHost, text: str, found: str) -> None:
    expected = f"plugin '{text}': must provide exactly one backend, it provides {found}"
    with pytest.raises(PluginError) as caught:
        plugins.resolve_one("backend", text)
    assert caught.value.message == expected


def test_none(plugins: PluginHost) -> None:
    with pytest.raises(PluginError) as caught:
        plugins.resolve_one("backend", "loca")
    assert caught.value.message == "plugin 'loca': no entry point, distribution, module or path of that name"
    assert caught.value.hints == ("did you mean 'local'?", "backends: far, local")


def test_a_name_that_is_taken(plugins: PluginHost, work: Path) -> None:
    write_files(work, {"again.py": provider("local", kind="backend")})
    with pytest.raises(PluginError, match=r"backend 'local' is provided by backends 1\.0 and \./again\.py"):
        plugins.resolve_one("backend", "./again.py")


def test_one_that_fails(plugins: PluginHost, work: Path) -> None:
    write_files(work, {"bad.py": "1/0"})
    with pytest.raises(PluginError, match=r"plugin './bad\.py': ZeroDivisionError"):
        plugins.resolve_one("backend", "./bad.py")


def test_an_installed_one_that_failed(site: Site, work: Path) -> None:
    site.distribution("bad", "1.0", groups={"vally.backends": {"bad": "bad_mod"}}, files={"bad_mod.py": "1/0"})
    with pytest.raises(PluginError, match="plugin 'bad': ZeroDivisionError: division by zero"):
        host(cwd=work).resolve_one("backend", "bad")


def test_javascript(plugins: PluginHost) -> None:
    with pytest.raises(PluginError, match="is a JavaScript plugin"):
        plugins.resolve_one("backend", "@acme/backend")


def test_bases_of_the_project_file(plugins: PluginHost, tmp_path: Path) -> None:
    write_files(tmp_path / "project", {"p.py": provider("of-project", kind="backend")})
    assert plugins.resolve_one("backend", "./p.py", bases=(tmp_path / "project",)).name == "of-project"
