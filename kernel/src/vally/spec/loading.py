"""What one load of a spec shares: its file, its project, plugins, parameters and diagnostics."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.spec import paths
from vally.spec.diagnostics import Collector, Place
from vally.spec.nodes import Node, ScalarNode, Source
from vally.spec.placeholders import Filler, Parameters

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.model.evalspec import Project


@dataclass(kw_only=True)
class Loading:
    """The state of one load. `skill_dirs` tells that skills are offered where a stimulus declares none.

    `memo` has what was read and reported once, `facts` what is known of the file system.
    """

    source: Source
    collector: Collector
    project: Project
    host: PluginHost
    parameters: Parameters = field(default_factory=Parameters)
    skill_dirs: bool = False
    memo: dict[Any, Any] = field(default_factory=dict)
    facts: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.collector.redact = self.parameters.redacted

    @property
    def filler(self) -> Filler:
        """Fills placeholders with the parameters of this load."""
        return Filler(self.parameters, self.collector)

    @property
    def committed(self) -> bool:
        """Whether the spec lies in a git work tree."""
        key = ("committed", self.source.path)
        if key not in self.facts:
            self.facts[key] = paths.repository_root(self.source.path) is not None
        committed: bool = self.facts[key]
        return committed

    def real_path(self, path: str | Path) -> str:
        """Where a path leads."""
        key = ("real path", str(path))
        if key not in self.facts:
            self.facts[key] = os.path.realpath(path)
        real: str = self.facts[key]
        return real

    def fresh(self) -> Loading:
        """The same load with no findings yet."""
        return replace(self, collector=Collector(lint=self.collector.lint), memo={})

    def resolve(self, node: ScalarNode, place: Place, text: str | None = None) -> Path:
        """The absolute path that a scalar names, from the directory of its file.

        A path of the project file that exists only below the directory of the spec is taken from there.
        """
        written = node.text if text is None else text
        self.check_absolute(node, place)
        path = paths.absolute(node.source.base, written)
        if not self.is_in_project_file(node) or paths.exists(path):
            return path
        legacy = paths.absolute(self.source.base, written)
        if legacy != path and paths.exists(legacy):
            self.warn_legacy_base(node, place)
            return legacy
        return path

    def is_in_project_file(self, node: Node) -> bool:
        """Whether a node stands in the project file, whose paths were once relative to the spec."""
        return node.source.path == self.project.path

    def check_absolute(self, node: ScalarNode, place: Place) -> None:
        """Warn about an absolute path in a committed spec."""
        if self.committed and paths.is_written_absolute(node):
            self.collector.add("absolute-path", node, place, path=node.text)

    def warn_legacy_base(self, node: ScalarNode, place: Place) -> None:
        """Warn that a path of the project file was found relative to the spec."""
        self.collector.add("legacy-path-base", node, place, path=node.text)

    def display(self, path: Path) -> str:
        """A path as messages name it."""
        return paths.relative_display(path, self.project.root)


def shown_path(node: Node, path: Path) -> str:
    """A path as records show it: absolute, or the placeholders of process variables as written."""
    if isinstance(node, ScalarNode) and node.written is not None:
        return node.written
    return path.as_posix()
