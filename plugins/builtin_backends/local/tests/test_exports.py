"""What other backends may use, and what asking for it costs."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import vally_backend_local


def stub_modules() -> dict[str, str]:
    """Module by exported name, as type checkers see it."""
    tree = ast.parse(Path(vally_backend_local.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    nodes = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in nodes for alias in node.names}


def test_type_checkers_see_the_same_names() -> None:
    assert set(vally_backend_local.__all__) == set(stub_modules())


@pytest.mark.parametrize(("name", "module"), sorted(stub_modules().items()))
def test_a_name_is_what_type_checkers_take_it_for(name: str, module: str) -> None:
    assert getattr(vally_backend_local, name) is getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("name", sorted(vally_backend_local.__all__))
def test_every_name_is_explained(name: str) -> None:
    assert f"`{name}`" in (vally_backend_local.__doc__ or "")


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="module 'vally_backend_local' has no attribute 'Surely'"):
        vally_backend_local.Surely  # noqa: B018  # looking it up is the test
    assert "LocalBackend" in dir(vally_backend_local)


def test_importing_the_package_imports_no_other_of_its_modules() -> None:
    code = "import sys, vally_backend_local; print(*[name for name in sys.modules if name.startswith('vally')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["vally_backend_local"]
