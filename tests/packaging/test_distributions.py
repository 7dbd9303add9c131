"""The built wheels, in environments of their own: complete, with one removed, and the kernel alone."""

from __future__ import annotations

import json
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from checkout import KERNEL, MEMBERS, PLUGINS, ROOT_PYPROJECT, Member
from environments import Environment, Wheels, check

pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("packaging")]
each_member = pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
each_plugin = pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)

EVAL = """\
name: echo
defaults: {executor: mock}
stimuli:
  - name: says-hi
    prompt: hi
    graders:
      - type: output-contains
        config: {substring: hi}
"""
NEEDED_BY_THE_EVAL = {
    "vally-backend-local": "local",
    "vally-executor-mock": "mock",
    "vally-grader-output": "output-contains",
}


def record_names(plugin: Member) -> set[str]:
    records = getattr(import_module(f"{plugin.package}.plugin"), f"vally_{plugin.kind}s")()
    return {f"{plugin.kind} {record.name}" for record in records}


def listed(environment: Environment) -> dict[str, dict[str, Any]]:
    completed = environment.vally("plugins", "list", "--output", "json")
    assert completed.returncode == 0, completed.stderr
    return {f"{plugin['kind']} {plugin['name']}": plugin for plugin in json.loads(completed.stdout)["plugins"]}


def top_names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name.split("/")[0] for name in archive.namelist()}


@each_member
def test_a_wheel_holds_its_package_only(member: Member, wheels: Wheels) -> None:
    assert {name for name in top_names(wheels.of(member.name)) if not name.endswith(".dist-info")} == {member.package}


def test_the_meta_distribution_is_metadata_only(wheels: Wheels) -> None:
    wheel = wheels.of("vally")
    (folder,) = top_names(wheel)
    with zipfile.ZipFile(wheel) as archive:
        lines = archive.read(f"{folder}/METADATA").decode().splitlines()
    required = {line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")}
    table = ROOT_PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["members"]
    extras = {name: entry["extra"] for name, entry in table.items() if "extra" in entry}
    offered = [(name, extra) for name, entry in table.items() for extra in entry.get("offers", "").split(",") if extra]
    assert required == {
        f"{member.name}=={member.project['version']}"
        + (f"; extra == '{extras[member.name]}'" if member.name in extras else "")
        for member in MEMBERS
    } | {f"{name}[{extra}]=={table[name]['version']}; extra == '{extra}'" for name, extra in offered}


def test_the_console_script_prints_the_version(complete: Environment) -> None:
    assert check([complete.scripts / "vally", "--version"], complete.root) == f"{KERNEL.project['version']}\n"


def test_every_built_in_is_found(complete: Environment) -> None:
    plugins = listed(complete)
    assert set(plugins) == {name for plugin in PLUGINS for name in record_names(plugin)}
    assert {plugin["status"] for plugin in plugins.values()} == {"ok"}
    assert {plugin["source"] for plugin in plugins.values()} == {"built in"}


def test_the_kernel_alone_starts(kernel_only: Environment) -> None:
    assert kernel_only.vally("--version").stdout == f"{KERNEL.project['version']}\n"
    assert listed(kernel_only) == {}
    assert not (kernel_only.scripts / "vally").exists()


@each_plugin
def test_without_one_distribution_the_rest_works(plugin: Member, complete: Environment, wheels: Wheels) -> None:
    complete.uninstall(plugin.name)
    try:
        assert complete.vally("--version").returncode == 0
        plugins = listed(complete)
        completed = evaluate(complete)
    finally:
        complete.install("--no-deps", wheels.of(plugin.name))
    assert set(plugins) == {name for other in PLUGINS if other != plugin for name in record_names(other)}
    assert {p["status"] for p in plugins.values()} == {"ok"}
    assert "Traceback" not in completed.stderr
    missing = NEEDED_BY_THE_EVAL.get(plugin.name)
    assert completed.returncode == (1 if missing else 0), completed.stderr
    assert missing is None or f"'{missing}'" in completed.stderr


def evaluate(environment: Environment) -> Any:
    spec = environment.root / "echo.eval.yaml"
    spec.write_text(EVAL, encoding="utf-8")
    return environment.vally("eval", "-e", spec.name, "--require-pass")
