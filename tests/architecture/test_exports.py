"""What plugins offer to each other, and what asking for it costs."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checkout import PLUGINS

OFFERING = [plugin.package for plugin in PLUGINS if (plugin.path / "src" / plugin.package / "__init__.pyi").exists()]


def stub_modules(package: Any) -> dict[str, str]:
    """Module by exported name, as type checkers see it."""
    tree = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    nodes = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in nodes for alias in node.names}


NAMES = [(name, item) for name in OFFERING for item in sorted(importlib.import_module(name).__all__)]


def test_plugins_that_others_build_on_are_found() -> None:
    assert {"vally_backend_local", "vally_executor_copilot_sdk", "vally_grader_prompt"} <= set(OFFERING)


@pytest.mark.parametrize("package", OFFERING)
def test_type_checkers_see_the_same_names(package: str) -> None:
    module = importlib.import_module(package)
    assert set(module.__all__) == set(stub_modules(module))


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_a_name_is_explained_and_is_what_type_checkers_take_it_for(package: str, name: str) -> None:
    module = importlib.import_module(package)
    assert f"`{name}`" in (module.__doc__ or "")
    assert getattr(module, name) is getattr(importlib.import_module(stub_modules(module)[name]), name)
    assert name in dir(module)


@pytest.mark.parametrize("package", OFFERING)
def test_a_name_that_is_not_offered(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Surely'"):
        importlib.import_module(package).Surely  # noqa: B018  # looking it up is the test


@pytest.mark.parametrize("package", OFFERING)
def test_importing_a_package_imports_no_other_of_its_modules(package: str) -> None:
    code = f"import sys, {package}; print(*[name for name in sys.modules if name.startswith('vally')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {package, "vally", "vally._version"}
