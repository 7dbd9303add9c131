"""What a user can write has an entry in the reference, and the reference promises nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checkout import PLUGINS, ROOT
from fences import documented

import vally
from vally.testing import run_cli

REFERENCE = ROOT / "docs" / "reference"
HOOKS = [f"vally_{name}" for name in (
    "graders", "executors", "backends", "judges", "reporters", "commands", "exporters", "eval_providers",
)]  # fmt: skip
COMMANDS = [
    tuple(words.split())
    for words in (
        "compare",
        "completion",
        "doctor",
        "eval",
        "experiment merge",
        "experiment run",
        "grade",
        "ingest",
        "init",
        "lint",
        "migrate",
        "mock-llm",
        "oracle",
        "plugins list",
        "rejudge",
        "runs",
        "schema",
        "serve",
        "show",
        "simulate record",
    )
]
HOST = vally.PluginHost()


def built_in_records(kind: str) -> list[str]:
    """Names of the records that this repository provides; others may be installed too."""
    packages = {plugin.package for plugin in PLUGINS}
    records = HOST.records(kind).values()
    return [record.name for record in records if str(record.factory).split(".")[0].split(":")[0] in packages]


def page_of(kind: str) -> Path:
    return ROOT / "docs" / "guide" / "reporters.md" if kind == "reporter" else REFERENCE / f"{kind}s.md"


def test_every_hook_has_an_entry() -> None:
    assert set(HOOKS) <= documented(REFERENCE / "hooks.md")


@pytest.mark.parametrize("kind", ["grader", "executor", "backend", "judge", "reporter"])
def test_every_built_in_has_an_entry(kind: str) -> None:
    names = set(built_in_records(kind))
    assert names
    assert names <= documented(page_of(kind))


@pytest.mark.parametrize("kind", ["grader", "executor", "backend", "judge"])
def test_every_setting_has_an_entry(kind: str) -> None:
    entries = documented(page_of(kind))
    for name in built_in_records(kind):
        model = HOST.config_model(HOST.require(kind, name))
        fields = {field.alias or key for key, field in model.model_fields.items()} if model else set()
        assert fields <= entries, f"{name}: {sorted(fields - entries)}"


def options_of(command: tuple[str, ...], tmp_path: Path) -> set[str]:
    result = run_cli([*command, "--help"], cwd=tmp_path)
    assert result.exit_code == 0
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", result.stdout))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_option_has_an_entry(command: tuple[str, ...], tmp_path: Path) -> None:
    assert options_of(command, tmp_path) <= documented(REFERENCE / "cli.md")


def test_the_reference_names_no_option_that_does_not_exist(tmp_path: Path) -> None:
    existing = set().union(*(options_of(command, tmp_path) for command in COMMANDS))
    assert {entry for entry in documented(REFERENCE / "cli.md") if entry.startswith("--")} <= existing
