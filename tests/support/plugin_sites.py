"""Real distributions in a temporary directory, and hosts that see them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from vally import PluginHost, PluginSources

RECORDS = {
    "grader": "GraderSpec",
    "executor": "ExecutorSpec",
    "backend": "BackendSpec",
    "judge": "JudgeSpec",
    "reporter": "ReporterSpec",
}
HOOKS = {kind: f"vally_{kind}s" for kind in RECORDS}

COUNTS_IMPORTS = """\
import pathlib
with pathlib.Path(__file__).with_name("count").open("a") as file:
    file.write("x")
"""


def provider(*names: str, kind: str = "grader", api: int | None = 1) -> str:
    """Source of a hook module that provides records of these names."""
    lines = [f"from vally import {RECORDS[kind]}, hookimpl"]
    if api is not None:
        lines.append(f"vally_api = {api}")
    lines += ["@hookimpl", f"def {HOOKS[kind]}():"]
    lines += [f"    yield {RECORDS[kind]}(name={name!r}, summary='provides {name}', factory=dict)" for name in names]
    return "\n".join([*lines, "    return", ""])


class Site:
    """A directory like `site-packages`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def distribution(
        self,
        name: str,
        version: str,
        *,
        graders: Mapping[str, str] | None = None,
        groups: Mapping[str, Mapping[str, str]] | None = None,
        requires: Sequence[str] = (),
        files: Mapping[str, str] | None = None,
    ) -> None:
        """Install a distribution: its metadata, its entry points (label -> module) and its modules."""
        info = self.path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        metadata = [f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}"]
        metadata += [f"Requires-Dist: {line}" for line in requires]
        (info / "METADATA").write_text("\n".join(metadata) + "\n")
        points = {**({"vally.graders": graders} if graders else {}), **(groups or {})}
        text = "".join(
            f"[{group}]\n" + "".join(f"{label} = {value}\n" for label, value in entries.items())
            for group, entries in points.items()
        )
        (info / "entry_points.txt").write_text(text)
        write_files(self.path, files or {})

    def grader(self, distribution: str, version: str, *names: str, module: str, label: str = "main") -> None:
        """Install a distribution that provides graders of these names."""
        self.distribution(distribution, version, graders={label: module}, files={f"{module}.py": provider(*names)})


def write_files(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(textwrap.dedent(text))


def host(*specifiers: tuple[str, str], cwd: Path | None = None, **sources: object) -> PluginHost:
    """A host of what the site holds and of specifiers as on a command line started in `cwd`."""
    facts = {"bases": () if cwd is None else (cwd,), **sources}
    return PluginHost(sources=PluginSources(command_line=specifiers, **facts))  # type: ignore[arg-type]


def names(plugins: PluginHost, kind: str = "grader") -> list[str]:
    return list(plugins.records(kind))


def problem(plugins: PluginHost, kind: str = "grader") -> str:
    """The one thing that makes a kind unusable."""
    (error,) = plugins.problems([kind])
    return error.message
