"""Finding plugins without importing them; the only user of importlib-metadata.

Everything here is a function over small tuples: an entry point of an installed distribution, a directory, a file and
a dotted module all become a `PluginSource`, so that sorting, conflict checks and listings treat them alike.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from vally.records import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Origin = Literal["installed", "project", "option", "object"]
META_DISTRIBUTION = "vally"
KERNEL_DISTRIBUTION = "vally-kernel"
_HEADER = re.compile(r"^([A-Za-z-]+):[ \t]*(.*(?:\n[ \t].*)*)", re.MULTILINE)
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*\(?([^;()@]*)")
_EXTRA = re.compile(r"""\bextra\s*==\s*["']([A-Za-z0-9._-]+)["']""")


class Owner(NamedTuple):
    """The distribution that a plugin belongs to; `requires` are its requirements as written."""

    name: str
    version: str | None
    requires: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Name and version for messages."""
        return f"{self.name} {self.version}" if self.version else self.name


class PluginSource(NamedTuple):
    """One module (or attribute of it) that may provide records of one kind.

    `label` is the entry-point name or, when `origin` is `project` or `option`, the specifier as written. `file` is a
    single file to import under the name `module`; `import_root` is a directory for the front of `sys.path`.
    """

    kind: str
    label: str
    module: str
    attribute: str | None = None
    origin: Origin = "installed"
    owner: Owner | None = None
    file: Path | None = None
    import_root: Path | None = None
    path: Path | None = None
    target: Any = None

    @property
    def explicit(self) -> bool:
        """Whether a user named it, so that its failure ends the program."""
        return self.origin != "installed"

    @property
    def value(self) -> str:
        """What an entry point would say: `module` or `module:attribute`."""
        return f"{self.module}:{self.attribute}" if self.attribute else self.module

    @property
    def identity(self) -> tuple[object, ...]:
        """What tells two sources apart: the same identity is the same code."""
        return self.module, self.attribute, self.file, self.import_root, id(self.target)

    @property
    def title(self) -> str:
        """How messages name the provider: its distribution and version, or what the user wrote."""
        if self.owner is not None and self.path is None:
            return self.owner.title
        return self.label


def normalised(name: str) -> str:
    """Return a distribution name in the form in which names are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed_sources() -> tuple[PluginSource, ...]:
    """Return the entry points of every kind, sorted by kind, distribution and entry-point name."""
    kind_of = {kind.group: kind.name for kind in KINDS.values()}
    found = []
    for owner, points in _providers(frozenset(kind_of)):
        for point in points:
            module, _, attribute = point.value.partition("[")[0].partition(":")
            found.append(
                PluginSource(kind_of[point.group], point.name, module.strip(), attribute.strip() or None, owner=owner)
            )
    return tuple(sorted(found, key=_order))


def _providers(groups: frozenset[str]) -> Iterator[tuple[Owner, list[Any]]]:
    """Each installed distribution with entry points of these groups, and those; a damaged one hides no other."""
    import importlib_metadata

    # An entry that does not exist, such as the zip file of the standard library, holds no distribution.
    path = [entry for entry in sys.path if Path(entry).exists()]
    seen = set()
    for distribution in importlib_metadata.distributions(path=path):
        try:
            points = _points(distribution, groups)
            if not points:
                continue
            owner = _owner(distribution)
            name = normalised(owner.name)
            if name not in seen and not _is_hidden(distribution, owner.name, path):
                seen.add(name)
                yield owner, points
        except Exception as error:
            _log_damaged(distribution, error)


def _log_damaged(distribution: Any, error: Exception) -> None:
    """Tell people who miss a plugin; a distribution that is nobody's business must not warn everybody."""
    import logging

    place = getattr(distribution, "_path", distribution)
    logging.getLogger("vally.plugins").info("distribution at %s cannot be read: %r", place, error)


def _is_hidden(distribution: Any, name: str, path: list[str]) -> bool:
    """Whether a distribution of that name comes earlier on the path, and so is what an import finds."""
    import importlib_metadata

    place = str(distribution.locate_file(""))
    before = path[: path.index(place)] if place in path else []
    return any(True for _ in importlib_metadata.distributions(name=name, path=before)) if before else False


def _points(distribution: Any, groups: frozenset[str]) -> list[Any]:
    return [point for point in distribution.entry_points if point.group in groups]


def _order(source: PluginSource) -> tuple[str, str, str, str]:
    owner = normalised(source.owner.name) if source.owner else ""
    return source.kind, owner, source.label, source.value


def _owner(distribution: Any) -> Owner:
    """Name, version and requirements; reads the few lines it needs instead of parsing all of them as an e-mail."""
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    headers = [(match[1].lower(), " ".join(match[2].split())) for match in _HEADER.finditer(text.partition("\n\n")[0])]
    values = dict(reversed(headers))
    requires = tuple(value for name, value in headers if name == "requires-dist")
    return Owner(values.get("name") or "unknown", values.get("version"), requires)


def entry_point(name: str, source: PluginSource) -> Any:
    """Return the entry point by which `source` is loaded; `name` is unique among those loaded together."""
    import importlib_metadata

    return importlib_metadata.EntryPoint(name=name, value=source.value, group=KINDS[source.kind].group)


def built_in_distributions() -> frozenset[str]:
    """Return the normalised names that the installed meta-distribution requires, those of its extras included."""
    import importlib_metadata

    try:
        requires = _owner(importlib_metadata.distribution(META_DISTRIBUTION)).requires
    except importlib_metadata.PackageNotFoundError:
        return frozenset()
    return frozenset(normalised(match[1]) for line in requires if (match := _REQUIREMENT.match(line)))


def install_hint(kind: str, name: str) -> str | None:
    """How to install what provides a name, when that is an extra of the meta-distribution; None for anything else."""
    import importlib_metadata

    try:
        requires = _owner(importlib_metadata.distribution(META_DISTRIBUTION)).requires
    except importlib_metadata.PackageNotFoundError:
        return None
    wanted = normalised(f"vally-{kind}-{name}")
    for line in requires:
        match, extra = _REQUIREMENT.match(line), _EXTRA.search(line)
        if match and extra and normalised(match[1]) == wanted:
            return f"pip install '{META_DISTRIBUTION}[{extra[1]}]'"
    return None


def kernel_requirement(requires: Iterable[str]) -> str | None:
    """Return the version range, as written, that a plugin's requirements ask of the kernel; None without one."""
    for line in requires:
        match = _REQUIREMENT.match(line)
        if match and normalised(match[1]) == KERNEL_DISTRIBUTION and match[2].strip():
            return ",".join(part.strip() for part in match[2].split(","))
    return None


def merge_sources(sources: Sequence[PluginSource]) -> tuple[PluginSource, ...]:
    """Leave one source per module: the most explicit one, in the place of the first.

    Directories that hold different packages of one name stay apart, so that loading can refuse the second.
    """
    merged: list[PluginSource] = []
    for source in sources:
        index = next((i for i, other in enumerate(merged) if _same_module(source, other)), None)
        if index is None:
            merged.append(source)
        elif source.explicit and not merged[index].explicit:
            merged[index] = source._replace(owner=source.owner or merged[index].owner)
    return tuple(merged)


def _same_module(one: PluginSource, other: PluginSource) -> bool:
    if one.target is not None or other.target is not None:
        return one.target is other.target
    roots = {one.import_root, other.import_root} - {None}
    return (one.kind, one.value, one.file) == (other.kind, other.value, other.file) and len(roots) < 2


def replace_shadowed(
    installed: Iterable[PluginSource], explicit: Iterable[PluginSource]
) -> tuple[tuple[PluginSource, ...], dict[str, str]]:
    """Leave out installed distributions of which a directory is given; returns the rest and name -> that path."""
    shadows = {
        normalised(source.owner.name): source.label
        for source in explicit
        if source.path is not None and source.owner is not None
    }
    rest = tuple(source for source in installed if source.owner and normalised(source.owner.name) not in shadows)
    return rest, shadows
