"""Plugins on workers: where they come from, and which versions they have."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from vally import BackendError, PluginHost, PluginSources, __version__, grader
from vally.testing import plugin_host
from vally_backend_ray import plugin
from vally_backend_ray.hosts import host_plan, loaded_versions, local_plugins, make_host, version_problem
from vally_backend_ray.mirror import mirrored
from vally_backend_ray.pickling import packed, unpacked

WORDS = """
from vally import GraderResult, grader

@grader("words")
def words(input):
    "Counts words."
    return GraderResult.verdict(True, "words")
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    (tmp_path / "words.py").write_text(WORDS)
    package = tmp_path / "hosted"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "plugin.py").write_text(WORDS.replace("words", "others"))
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.split(".")[0] == "hosted" or name.startswith("vally_file_"):
            del sys.modules[name]


def on_a_worker(host: PluginHost, root: Path) -> PluginHost:
    """The host as a worker makes it, the files of its plugins below `root`."""
    plugins = local_plugins(host)
    for path in plugins.paths:
        target = mirrored(path, root)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    plan = unpacked(packed(host_plan(plugins, "bundle" if plugins.paths else None)))
    return make_host(plan, root if plugins.paths else None)


def test_local_plugins_are_found_where_the_bundle_has_them(project: Path, tmp_path: Path) -> None:
    sources = PluginSources(
        installed=False,
        project=(("grader", "./words.py", project), ("reporter", "./nothing.py", project)),
        command_line=(("grader", "hosted"),),
        bases=(project,),
    )
    host = on_a_worker(PluginHost(sources=sources), tmp_path / "fs")
    assert set(host.records("grader")) == {"words", "others"}
    assert not (project / "words.py").exists()


def test_installed_plugins_are_those_of_the_worker() -> None:
    plugins = local_plugins(PluginHost())
    assert plugins.paths == frozenset()
    assert "local" in make_host(host_plan(plugins, None), None).records("backend")


def test_records_that_can_be_imported_travel() -> None:
    host = on_a_worker(plugin_host(*plugin.vally_backends()), Path("/nowhere"))
    assert set(host.records("backend")) == {"ray"}


def test_what_exists_in_this_process_only_is_refused() -> None:
    @grader("closure")
    def closure(_: object) -> None:
        """Says nothing."""

    with pytest.raises(BackendError, match="plugin 'closure' exists in this process only") as caught:
        local_plugins(plugin_host(closure))
    assert caught.value.code == "unsupported-option"


def test_equal_hosts_have_equal_keys() -> None:
    one, two = (host_plan(local_plugins(PluginHost()), None) for _ in range(2))
    other = host_plan(local_plugins(PluginHost(sources=PluginSources(no_plugin=("acme",)))), None)
    assert one.key == two.key != other.key


def test_versions_of_vally_and_of_all_loaded_distributions() -> None:
    found = loaded_versions(PluginHost())
    assert found["vally-kernel"] == __version__
    assert found["vally-backend-ray"] == metadata.version("vally-backend-ray")
    assert version_problem(found) is None


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"vally-kernel": "0.0.1"}, ["'vally-kernel'", __version__, "0.0.1"]),
        ({"pytest": "0.0.1"}, ["'pytest'", metadata.version("pytest"), "0.0.1"]),
        ({"acme-graders": "1.2"}, ["'acme-graders' is not installed there", "1.2"]),
    ],
)
def test_a_difference_names_both_versions(wanted: dict[str, str], words: list[str]) -> None:
    problem = version_problem(wanted)
    assert problem is not None
    assert all(word in problem for word in words)
