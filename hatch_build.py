"""Turns the member table of ``pyproject.toml`` into the dependencies and extras of the meta-distribution."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface
from packaging.requirements import Requirement

Members = dict[str, dict[str, str]]


class MembersMetadataHook(MetadataHookInterface):
    """Requires every member: by path in a checkout, by exact version in a release and outside a checkout.

    A member with an ``extra`` is required by that extra only. What a member ``offers`` are extras of its own, by names
    between commas, which become extras of the whole.
    """

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        release = bool(os.environ.get("VALLY_RELEASE"))
        required = requirements(Path(self.root), self.config["members"], release=release)
        metadata["dependencies"] = required.pop(None, [])
        metadata["optional-dependencies"] = required


def requirements(root: Path, members: Members, *, release: bool) -> dict[str | None, list[str]]:
    """The requirements of each extra, and under None those without one, in the order of the table.

    A checkout is a tree in which the folder of any member lies. There a member whose folder was deleted is left out,
    and so is a member that requires it: neither need exist in a registry.
    """
    present = _present(root, members)
    by_version = release or not present
    found: dict[str | None, list[str]] = {}
    for name, member in (members if by_version else present).items():
        place = f" @ {(root / member['path']).resolve().as_uri()}"
        where = f"=={member['version']}" if by_version else place
        found.setdefault(member.get("extra"), []).append(name + where)
        for extra in filter(None, member.get("offers", "").split(",")):
            found.setdefault(extra, []).append(f"{name}[{extra}]{where}")
    return found


def _present(root: Path, members: Members) -> Members:
    present = {name: member for name, member in members.items() if _pyproject(root, member).is_file()}
    while True:
        missing = members.keys() - present.keys()
        kept = {name: member for name, member in present.items() if not missing & _requires(root, member)}
        if kept == present:
            return present
        present = kept


def _requires(root: Path, member: dict[str, str]) -> set[str]:
    project = tomllib.loads(_pyproject(root, member).read_text(encoding="utf-8"))["project"]
    return {Requirement(line).name.lower() for line in project.get("dependencies", [])}


def _pyproject(root: Path, member: dict[str, str]) -> Path:
    return root / member["path"] / "pyproject.toml"
