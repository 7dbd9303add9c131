"""What starting the program imports, counted in modules, because milliseconds differ between machines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from checkout import PLUGINS

PROGRAM = """
import sys
from vally.cli.main import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print(*sorted(sys.modules), file=sys.stderr)
"""
BARE = "import sys; print(*sorted(sys.modules), file=sys.stderr)"
HEAVY = {"anyio", "asyncio", "git", "psutil", "pydantic", "quickjs", "rich", "sqlite3", "stevedore", "yaml"}


def modules_of(argv: list[str], cwd: Path) -> list[str]:
    done = subprocess.run([sys.executable, *argv], cwd=cwd, capture_output=True, text=True, timeout=60, check=True)
    return done.stderr.splitlines()[-1].split()


def tops(modules: list[str]) -> set[str]:
    return {module.split(".")[0] for module in modules}


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_costs_a_handful_of_modules(option: str, tmp_path: Path) -> None:
    added = set(modules_of(["-c", PROGRAM, option], tmp_path)) - set(modules_of(["-c", BARE], tmp_path))
    assert len(added) <= 6, sorted(added)


def test_the_version_with_anything_else_is_the_business_of_the_program(tmp_path: Path) -> None:
    modules = modules_of(["-c", PROGRAM, "--version", "eval"], tmp_path)
    assert len(modules) <= 150
    assert not tops(modules) & HEAVY
    assert not [module for module in modules if module.startswith("vally_")]


@pytest.mark.parametrize("arguments", [["--help"], ["eval", "--help"], ["plugins", "list", "--help"]], ids=" ".join)
def test_help_costs_at_most_260_modules(arguments: list[str], tmp_path: Path) -> None:
    modules = modules_of(["-c", PROGRAM, *arguments], tmp_path)
    assert len(modules) <= 260
    assert not tops(modules) & (HEAVY - {"stevedore"})


def test_the_modules_with_hooks_import_nothing_heavy(tmp_path: Path) -> None:
    names = [f"{plugin.package}.plugin" for plugin in PLUGINS]
    script = f"import sys, {', '.join(names)}; print(*sorted(sys.modules), file=sys.stderr)"
    modules = modules_of(["-c", script], tmp_path)
    assert not tops(modules) & HEAVY
    own = [module for module in modules if module.startswith("vally_") and module.count(".")]
    assert sorted(own) == sorted(names)
