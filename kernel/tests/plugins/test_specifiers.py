"""What a specifier means: the worked examples, and every form of the look-up table."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugin_sites import COUNTS_IMPORTS, Site, host, names, problem, provider, write_files

from vally import PluginError

PYPROJECT = """\
[project]
name = "{name}"
version = "{version}"
[project.entry-points."vally.graders"]
main = "{module}"
"""


def project(root: Path, name: str, version: str, module: str, *graders: str) -> Path:
    """Write a plugin project with a `src` directory."""
    text = PYPROJECT.format(name=name, version=version, module=module)
    write_files(root, {"pyproject.toml": text, f"src/{module}.py": provider(*graders)})
    return root


def test_sp_1_name_of_an_entry_point(site: Site, work: Path) -> None:
    site.grader("acme-graders", "1.3", "one", module="acme_one", label="acme")
    plugins = host(("grader", "acme"), cwd=work)
    assert names(plugins) == ["one"]
    assert plugins.origin(plugins.require("grader", "one")) == "entry point acme-graders"


def test_sp_2_dot_slash_is_the_directory(site: Site, work: Path) -> None:
    site.grader("acme-graders", "1.3", "from-entry-point", module="acme_one", label="acme")
    write_files(work / "acme", {"plugin.py": provider("from-directory")})
    plugins = host(("grader", "./acme"), cwd=work)
    assert plugins.origin(plugins.require("grader", "from-directory")) == "./acme"


def test_sp_3_a_bare_name_is_the_entry_point(site: Site, work: Path) -> None:
    site.grader("acme-graders", "1.3", "from-entry-point", module="acme_one", label="acme")
    write_files(work / "acme", {"plugin.py": provider("from-directory")})
    assert names(host(("grader", "acme"), cwd=work)) == ["from-entry-point"]


@pytest.mark.parametrize("text", ["@acme/graders", "./plugin.ts", "plugin.mjs", "lib/x.js", "a.mts"], ids=str)
def test_sp_4_javascript_is_refused(site: Site, work: Path, text: str) -> None:
    write_files(work, {"plugin.ts": "", "lib/x.js": ""})
    message = f"plugin '{text}' is a JavaScript plugin; this program loads Python plugins only"
    assert problem(host(("grader", text), cwd=work)) == message


def test_sp_5_an_explicit_file_that_exits(site: Site, work: Path) -> None:
    write_files(work, {"x.py": "import sys\nsys.exit(3)\n"})
    plugins = host(("grader", "./x.py"), cwd=work)
    assert problem(plugins) == "plugin './x.py': SystemExit: 3"
    with pytest.raises(PluginError, match="SystemExit: 3"):
        plugins.records("grader")


def test_sp_6_an_installed_module_that_exits(site: Site) -> None:
    site.grader("fine", "1.0", "good", module="fine_plugin")
    site.distribution("bad", "2.0", graders={"bad": "bad_plugin"}, files={"bad_plugin.py": "import sys; sys.exit(3)"})
    plugins = host()
    assert names(plugins) == ["good"]
    assert plugins.warnings() == ["plugin 'bad' of bad 2.0 cannot be used: SystemExit: 3"]


def test_sp_7_a_project_directory_replaces_its_installed_copy(site: Site, work: Path) -> None:
    site.grader("acme-graders", "1.3", "old", module="acme_installed")
    project(work / "acme-graders", "acme_graders", "2.0", "acme_checkout", "new")
    plugins = host(("grader", "./acme-graders"), cwd=work)
    assert names(plugins) == ["new"]
    assert plugins.warnings() == []
    rows = {(row.name, row.version, row.status) for row in plugins.listing(["grader"])}
    assert rows == {("new", "2.0", "ok"), ("main", "1.3", "shadowed by ./acme-graders")}


def test_sp_8_a_file_that_takes_the_name_of_an_installed_grader(site: Site, work: Path) -> None:
    site.distribution("vally", "1.2.0", requires=["vally-grader-files==1.2.0"])
    site.grader("vally-grader-files", "1.2.0", "file-exists", module="files_plugin")
    write_files(work, {"x.py": provider("file-exists")})
    plugins = host(("grader", "x.py"), cwd=work)
    assert problem(plugins) == "grader 'file-exists' is provided by vally-grader-files 1.2.0 and x.py"
    (error,) = plugins.problems(["grader"])
    assert error.hints == ("leave one out with --no-plugin vally-grader-files",)
    assert names(host(("grader", "x.py"), cwd=work, no_plugin=("vally_grader_files",))) == ["file-exists"]


def test_sp_9_one_directory_by_two_paths_loads_once(site: Site, work: Path) -> None:
    write_files(work / "d", {"plugin.py": COUNTS_IMPORTS + provider("once")})
    plugins = host(("grader", "./d"), ("grader", str(work / "d")), cwd=work)
    assert names(plugins) == ["once"]
    assert (work / "d" / "count").read_text() == "x"


def test_the_same_specifier_twice_loads_once(site: Site, work: Path) -> None:
    write_files(work, {"x.py": provider("once")})
    assert names(host(("grader", "./x.py"), ("grader", "./x.py"), cwd=work)) == ["once"]


def test_an_entry_point_that_two_distributions_offer(site: Site, work: Path) -> None:
    site.grader("a-plugin", "1.0", "one", module="a_mod", label="acme")
    site.grader("b-plugin", "2.0", "two", module="b_mod", label="acme")
    plugins = host(("grader", "acme"), cwd=work)
    assert problem(plugins) == "plugin 'acme': offered by a-plugin 1.0 and b-plugin 2.0"


def test_a_distribution_means_all_its_entry_points(site: Site, work: Path) -> None:
    files = {"m_one.py": provider("one"), "m_two.py": provider("two")}
    site.distribution("Acme.Graders", "1.0", graders={"a": "m_one", "b": "m_two"}, files=files)
    plugins = host(("grader", "acme-graders"), cwd=work, no_plugins=True)
    assert names(plugins) == ["one", "two"]


def test_an_attribute_of_a_module(site: Site, work: Path) -> None:
    text = """\
        from vally import GraderSpec

        def register():
            return [GraderSpec(name="made", summary="made", factory=dict)]
        """
    write_files(site.path, {"tools.py": text})
    assert names(host(("grader", "tools:register"), cwd=work)) == ["made"]


def test_a_dotted_module(site: Site, work: Path) -> None:
    write_files(site.path, {"acme_pkg/__init__.py": "", "acme_pkg/plug.py": provider("dotted")})
    assert names(host(("grader", "acme_pkg.plug"), cwd=work)) == ["dotted"]


def test_a_dotted_module_that_is_also_an_entry_point_loads_once(site: Site, work: Path) -> None:
    site.grader("acme", "1.0", "one", module="acme_mod")
    plugins = host(("grader", "acme_mod"), cwd=work)
    assert names(plugins) == ["one"]
    assert [row.version for row in plugins.listing(["grader"])] == ["1.0"]


def test_a_bare_directory_comes_last(site: Site, work: Path) -> None:
    write_files(work / "graders", {"plugin.py": provider("local")})
    assert names(host(("grader", "graders"), cwd=work)) == ["local"]
    write_files(site.path, {"graders.py": provider("importable")})
    assert names(host(("grader", "graders"), cwd=work)) == ["importable"]


@pytest.mark.parametrize("text", ["acme-grader", "./no.py", "no/where", "no.such.module"])
def test_nothing_matches(site: Site, work: Path, text: str) -> None:
    site.grader("acme-graders", "1.0", "one", module="acme_mod")
    plugins = host(("grader", text), cwd=work)
    assert problem(plugins) == f"plugin '{text}': no entry point, distribution, module or path of that name"


def test_near_matches_of_a_specifier(site: Site, work: Path) -> None:
    site.grader("acme-graders", "1.0", "one", module="acme_mod")
    (error,) = host(("grader", "acme-grader"), cwd=work).problems(["grader"])
    assert error.hints == ("did you mean 'acme-graders'?",)


def test_the_parent_of_a_dotted_module_fails(site: Site, work: Path) -> None:
    write_files(site.path, {"broken/__init__.py": "raise AssertionError('no')", "broken/sub.py": provider("x")})
    assert problem(host(("grader", "broken.sub"), cwd=work)) == "plugin 'broken.sub': AssertionError: no"


def test_a_package_directory_uses_its_plugin_module(site: Site, work: Path) -> None:
    files = {
        "__init__.py": "",
        "plugin.py": "from .names import NAME\n" + provider("x").replace("'x'", "NAME"),
        "names.py": "NAME = 'inner'\n",
    }
    write_files(work / "acme_local", files)
    assert names(host(("grader", "./acme_local"), cwd=work)) == ["inner"]


def test_a_package_directory_without_plugin_module(site: Site, work: Path) -> None:
    write_files(work / "acme_plain", {"__init__.py": provider("plain")})
    assert names(host(("grader", "./acme_plain"), cwd=work)) == ["plain"]


def test_a_project_directory_without_src(site: Site, work: Path) -> None:
    text = PYPROJECT.format(name="flat", version="1.0", module="flat_mod")
    write_files(work / "flat", {"pyproject.toml": text, "flat_mod.py": provider("flat")})
    plugins = host(("grader", "./flat"), cwd=work)
    assert names(plugins) == ["flat"]
    assert plugins.version(plugins.require("grader", "flat")) == "1.0"


def test_a_project_directory_without_entry_points_of_the_kind(site: Site, work: Path) -> None:
    project(work / "acme", "acme", "1.0", "acme_src", "x")
    plugins = host(("executor", "./acme"), cwd=work)
    assert problem(plugins, "executor") == "plugin './acme': ./acme declares no entry point in vally.executors"


def test_what_is_no_plugin(site: Site, work: Path) -> None:
    (work / "empty").mkdir()
    reason = "./empty is not a plugin: no pyproject.toml, __init__.py or plugin.py"
    assert problem(host(("grader", "./empty"), cwd=work)) == f"plugin './empty': {reason}"


def test_a_broken_pyproject(site: Site, work: Path) -> None:
    write_files(work / "acme", {"pyproject.toml": "[project"})
    assert problem(host(("grader", "./acme"), cwd=work)).startswith("plugin './acme': pyproject.toml: ")


def test_a_missing_dependency_of_a_project_directory(site: Site, work: Path) -> None:
    root = project(work / "acme", "acme", "1.0", "acme_needs", "x")
    write_files(root, {"src/acme_needs.py": "import surely_not_installed\n"})
    (error,) = host(("grader", "./acme"), cwd=work).problems(["grader"])
    assert error.message == "plugin './acme': No module named 'surely_not_installed'"
    assert error.hints == ("pip install -e ./acme",)


def test_a_package_of_that_name_imported_from_elsewhere(site: Site, work: Path) -> None:
    write_files(work / "a" / "twin_pkg", {"__init__.py": provider("one")})
    write_files(work / "b" / "twin_pkg", {"__init__.py": provider("two")})
    plugins = host(("grader", "./a/twin_pkg"), ("grader", "./b/twin_pkg"), cwd=work)
    place = (work / "a" / "twin_pkg").resolve()
    assert problem(plugins) == f"plugin './b/twin_pkg': package 'twin_pkg' is already imported from {place}"


def test_the_first_base_that_has_the_path_wins(site: Site, work: Path, tmp_path: Path) -> None:
    spec_dir = tmp_path / "evals"
    write_files(spec_dir, {"x.py": provider("beside-spec")})
    write_files(work, {"x.py": provider("in-cwd"), "y.py": provider("only-cwd")})
    plugins = host(("grader", "./x.py"), ("grader", "./y.py"), bases=(spec_dir, work))
    assert names(plugins) == ["beside-spec", "only-cwd"]
    assert plugins.warnings() == [f"plugin './x.py': {spec_dir / 'x.py'} is used, not {work / 'x.py'}"]


def test_project_plugins_start_at_the_project(site: Site, work: Path, tmp_path: Path) -> None:
    root = tmp_path / "project"
    write_files(root, {"tools/http.py": provider("of-project")})
    plugins = host(cwd=work, project=(("grader", "./tools/http.py", root),))
    assert names(plugins) == ["of-project"]
    assert [row.status for row in plugins.listing(["grader"])] == ["ok (.vally.yaml)"]
