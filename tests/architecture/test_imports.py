"""Who may import whom, where import-linter has no rule for it: public names, declared dependencies, thin modules."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from checkout import KERNEL, MEMBERS, PLUGINS, Member
from imports import Import, imports
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import vally
import vally.testing

each_member = pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
each_plugin = pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
PUBLIC = {"vally": set(vally.__all__) | {"testing"}, "vally.testing": set(vally.testing.__all__)}
# Functions for use as a library have no command line that could hand them the environment.
LIBRARY = {KERNEL.path / "src" / "vally" / "run" / name for name in ("library.py", "single.py")}
PROVIDERS = {**packages_distributions(), **{member.package: [member.name] for member in MEMBERS}}


def is_private(imported: Import) -> bool:
    """Whether an import by a plugin takes something that the kernel does not export."""
    if imported.top != "vally":
        return False
    if imported.name is None:
        return imported.module not in PUBLIC
    return imported.name not in PUBLIC.get(imported.module, set())


@each_plugin
def test_a_plugin_uses_public_names_of_the_kernel_only(plugin: Member) -> None:
    files = [*plugin.modules("src"), *plugin.modules("tests")]
    private = [f"{i.where}: {i.module}.{i.name or ''}" for path in files for i in imports(path) if is_private(i)]
    assert not private


@pytest.mark.parametrize(
    ("line", "private"),
    [
        ("import vally", False),
        ("from vally import GraderSpec", False),
        ("from vally.testing import run_cli", False),
        ("import vally.host", True),
        ("from vally.host import PluginHost", True),
        ("from vally import host", True),
        ("def f():\n    from vally.run import plan", True),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from vally.run import plan", False),
    ],
)
def test_private_imports_are_recognised(line: str, private: bool, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(line, encoding="utf-8")
    assert any(is_private(imported) for imported in imports(path)) is private


def exports(package: str) -> set[str] | None:
    """What a package of a plugin offers to other plugins; None when it does not say."""
    return getattr(import_module(package), "__all__", None)


def is_kept_back(imported: Import, own: str) -> bool:
    """Whether a module of the package `own` takes from another plugin what that one does not export."""
    if not imported.top.startswith("vally_") or imported.top == own:
        return False
    offered = exports(imported.top)
    return offered is not None and (imported.module != imported.top or imported.name not in offered)


@each_plugin
def test_a_plugin_uses_of_another_only_what_that_exports(plugin: Member) -> None:
    taken = [i for path in plugin.modules() for i in imports(path) if is_kept_back(i, plugin.package)]
    assert not [f"{i.where}: {i.module}.{i.name or ''}" for i in taken]


@pytest.mark.parametrize(
    ("line", "kept_back"),
    [
        ("from vally_backend_local import LocalBackend", False),
        ("from vally_backend_local import backend", True),
        ("from vally_backend_local.backend import LocalBackend", True),
        ("import vally_backend_local.backend", True),
        ("from vally_backend_other.backend import Backend", False),
    ],
)
def test_what_a_plugin_keeps_back_is_recognised(line: str, kept_back: bool, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(line, encoding="utf-8")
    assert any(is_kept_back(imported, "vally_backend_other") for imported in imports(path)) is kept_back


@each_member
def test_a_distribution_declares_what_it_imports(member: Member) -> None:
    allowed = {canonicalize_name(Requirement(line).name) for line in member.project["dependencies"]} | {member.name}
    for path in member.modules():
        for imported in imports(path):
            if imported.top not in sys.stdlib_module_names:
                providers = {canonicalize_name(name) for name in PROVIDERS.get(imported.top, [])}
                assert providers & allowed, f"{imported.where}: {imported.module} is not a declared dependency"


@each_member
def test_a_distribution_uses_what_it_declares(member: Member) -> None:
    tops = {imported.top for path in member.modules() for imported in imports(path)}
    used = {canonicalize_name(name) for top in tops for name in PROVIDERS.get(top, [])}
    declared = {canonicalize_name(Requirement(line).name) for line in member.project["dependencies"]}
    assert declared <= used


@each_plugin
def test_a_module_with_hooks_is_thin(plugin: Member) -> None:
    hooks = plugin.path / "src" / plugin.package / "plugin.py"
    heavy = [i.where for i in imports(hooks) if i.top != "vally" and i.top not in sys.stdlib_module_names]
    assert not heavy


def test_the_kernel_imports_no_plugin() -> None:
    assert not [i.where for path in KERNEL.modules() for i in imports(path) if i.top.startswith("vally_")]


@each_member
def test_only_the_command_line_reads_the_environment(member: Member) -> None:
    reads = [
        f"{path}:{node.lineno}"
        for path in member.modules()
        if not {"cli", "testing"} & set(path.parts) and path not in LIBRARY
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "environb"}
        if isinstance(node.value, ast.Name) and node.value.id == "os"
    ]
    assert not reads
