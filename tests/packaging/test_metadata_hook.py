"""The meta-distribution's requirements: by path in a checkout, by version elsewhere."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from checkout import ROOT

MEMBERS = {
    "vally-kernel": {"path": "kernel", "version": "0.1.0"},
    "vally-grader-prompt": {"path": "plugins/prompt", "version": "0.2.0"},
    "vally-grader-panel": {"path": "plugins/panel", "version": "0.3.0"},
    "vally-judge-tiny": {"path": "plugins/tiny", "version": "0.4.0", "extra": "tiny"},
}
BY_VERSION = {
    None: ["vally-kernel==0.1.0", "vally-grader-prompt==0.2.0", "vally-grader-panel==0.3.0"],
    "tiny": ["vally-judge-tiny==0.4.0"],
}
REQUIRES = {"vally-grader-prompt": ["vally-kernel>=0.1,<1"], "vally-grader-panel": ["Vally-Grader-Prompt>=0.1,<1"]}


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "a folder"
    for name, member in MEMBERS.items():
        folder = root / member["path"]
        folder.mkdir(parents=True)
        (folder / "pyproject.toml").write_text(f'[project]\nname = "{name}"\ndependencies = {REQUIRES.get(name, [])}\n')
    return root


def test_in_a_checkout_members_are_required_by_path(hook: ModuleType, checkout: Path) -> None:
    lines = [f"{name} @ {(checkout / member['path']).resolve().as_uri()}" for name, member in MEMBERS.items()]
    assert hook.requirements(checkout, MEMBERS, release=False) == {None: lines[:3], "tiny": lines[3:]}


def test_blanks_in_the_path_are_quoted(hook: ModuleType, checkout: Path) -> None:
    assert "/a%20folder/kernel" in hook.requirements(checkout, MEMBERS, release=False)[None][0]


def test_a_release_requires_exact_versions(hook: ModuleType, checkout: Path) -> None:
    assert hook.requirements(checkout, MEMBERS, release=True) == BY_VERSION


def test_outside_a_checkout_exact_versions_are_required(hook: ModuleType, tmp_path: Path) -> None:
    assert hook.requirements(tmp_path, MEMBERS, release=False) == BY_VERSION


@pytest.mark.parametrize(
    ("deleted", "left"),
    [
        ("vally-grader-panel", {"vally-kernel", "vally-grader-prompt", "vally-judge-tiny"}),
        ("vally-grader-prompt", {"vally-kernel", "vally-judge-tiny"}),
        ("vally-judge-tiny", {"vally-kernel", "vally-grader-prompt", "vally-grader-panel"}),
    ],
)
def test_a_deleted_member_is_left_out_with_those_that_need_it(
    deleted: str, left: set[str], hook: ModuleType, checkout: Path
) -> None:
    (checkout / MEMBERS[deleted]["path"] / "pyproject.toml").unlink()
    required = hook.requirements(checkout, MEMBERS, release=False)
    assert {line.split(" @ ")[0] for lines in required.values() for line in lines} == left


def test_extras_of_a_member_become_extras_of_the_whole(hook: ModuleType, checkout: Path) -> None:
    members = {**MEMBERS, "vally-grader-panel": {**MEMBERS["vally-grader-panel"], "offers": "fast,postgres"}}
    release = hook.requirements(checkout, members, release=True)
    assert release["fast"] == ["vally-grader-panel[fast]==0.3.0"]
    assert release["postgres"] == ["vally-grader-panel[postgres]==0.3.0"]
    assert release[None] == BY_VERSION[None]
    (line,) = hook.requirements(checkout, members, release=False)["postgres"]
    assert line == f"vally-grader-panel[postgres] @ {(checkout / 'plugins/panel').resolve().as_uri()}"
