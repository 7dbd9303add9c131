"""The tree: what a distribution's folder holds, how it is named, and that the lists of members agree."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from checkout import KERNEL, MEMBERS, PLUGINS, ROOT, ROOT_PYPROJECT, Member, read_toml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TABLE = ROOT_PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["members"]
each_member = pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
each_plugin = pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)


def visible(folder: Path) -> set[str]:
    left_by_tools = {"__pycache__", "build", "dist"}
    return {p.name for p in folder.iterdir() if not p.name.startswith(".") and p.name not in left_by_tools}


def requirements(member: Member) -> dict[str, Requirement]:
    parsed = [Requirement(line) for line in member.project["dependencies"]]
    return {canonicalize_name(requirement.name): requirement for requirement in parsed}


@each_member
def test_a_folder_holds_metadata_readme_source_and_tests(member: Member) -> None:
    assert visible(member.path) == {"pyproject.toml", "README.md", "src", "tests"}
    assert visible(member.path / "src") == {member.package}


@each_member
def test_a_package_is_typed_and_has_tests(member: Member) -> None:
    assert (member.path / "src" / member.package / "py.typed").is_file()
    assert list((member.path / "tests").rglob("test_*.py"))


def test_every_folder_of_built_ins_is_a_distribution() -> None:
    folders = {path for group in ROOT.glob("plugins/*") for path in group.iterdir() if visible(path)}
    assert folders == {plugin.path for plugin in PLUGINS}


@each_plugin
def test_names_follow_the_folder(plugin: Member) -> None:
    stem = plugin.path.name.replace("_", "-")
    assert plugin.name == f"vally-{plugin.kind}-{stem}"
    assert plugin.project["entry-points"] == {f"vally.{plugin.kind}s": {stem: f"{plugin.package}.plugin"}}


@each_plugin
def test_a_plugin_states_the_kernel_it_was_written_for(plugin: Member) -> None:
    specifier = requirements(plugin)["vally-kernel"].specifier
    assert KERNEL.project["version"] in specifier
    assert {part.operator for part in specifier} == {">=", "<"}


@each_member
def test_every_requirement_has_both_bounds_and_a_tested_version(member: Member) -> None:
    tested = dict(line.split("==") for line in constraint_lines())
    for name, requirement in requirements(member).items():
        assert {part.operator for part in requirement.specifier} == {">=", "<"}, requirement
        if not name.startswith("vally-"):
            assert tested[name] in requirement.specifier, requirement


def constraint_lines() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_constraints_are_names_and_versions_only() -> None:
    for line in constraint_lines():
        assert re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line), line


def test_the_member_table_lists_every_distribution() -> None:
    expected = {m.name: {"path": m.relative, "version": m.project["version"]} for m in MEMBERS}
    assert expected == {name: {key: entry[key] for key in ("path", "version")} for name, entry in TABLE.items()}


def test_what_only_some_need_is_an_extra() -> None:
    extras = {name: entry["extra"] for name, entry in TABLE.items() if "extra" in entry}
    assert extras == {
        "vally-backend-container": "container",
        "vally-backend-ray": "ray",
        "vally-backend-sandbox": "sandbox",
        "vally-judge-tiny": "tiny",
    }


def test_every_extra_has_one_row_in_the_instructions() -> None:
    extras = {entry["extra"] for entry in TABLE.values() if "extra" in entry}
    offered = {extra for entry in TABLE.values() for extra in entry.get("offers", "").split(",") if extra}
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z]+)` \|", text, re.MULTILINE) == sorted(extras | offered)


def test_the_other_lists_of_members_agree_with_the_table() -> None:
    requirements_dev = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
    assert {f"./{m.relative}" for m in MEMBERS} == set(re.findall(r"^-e (\S+)$", requirements_dev, re.MULTILINE))
    assert set(ROOT_PYPROJECT["tool"]["uv"]["sources"]) == set(TABLE)
    assert set(ROOT_PYPROJECT["tool"]["importlinter"]["root_packages"]) == {m.package for m in MEMBERS}


def test_the_contracts_name_every_plugin() -> None:
    packages = {plugin.package for plugin in PLUGINS}
    contracts = {c["name"]: c for c in ROOT_PYPROJECT["tool"]["importlinter"]["contracts"]}
    assert set(contracts["The kernel imports no plugin"]["forbidden_modules"]) == packages
    assert set(contracts["Plugins do not import each other"]["modules"]) == packages


def test_all_versions_are_the_same() -> None:
    import vally

    versions = {member.project["version"] for member in MEMBERS} | {ROOT_PYPROJECT["project"]["version"]}
    assert versions == {vally.__version__} == {version("vally-kernel")}


@each_member
def test_modules_are_short(member: Member) -> None:
    long = {str(p): n for p in member.modules() if (n := len(p.read_text(encoding="utf-8").splitlines())) > 350}
    assert not long


def test_every_distribution_builds_with_flit() -> None:
    backends = {read_toml(member.path / "pyproject.toml")["build-system"]["build-backend"] for member in MEMBERS}
    assert backends == {"flit_core.buildapi"}
