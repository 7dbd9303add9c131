"""The plugins of a run, on workers too: where they come from, and which versions must be there."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from vally import BackendError, PluginHost, PluginSources, __version__
from vally_backend_ray.codes import UNSUPPORTED
from vally_backend_ray.messages import HostPlan
from vally_backend_ray.mirror import mirrored
from vally_backend_ray.pickling import packed

KINDS = ("grader", "executor", "backend")
"""Kinds of plugins that workers use. Judges stay with the driver, and so does all that reports."""

KERNEL = "vally-kernel"


@dataclass(frozen=True, slots=True)
class LocalPlugins:
    """Sources of plugins with absolute paths, and those paths."""

    sources: PluginSources
    paths: frozenset[Path]


def local_plugins(host: PluginHost) -> LocalPlugins:
    """Where workers find the plugins of a host. Raises `BackendError` for what exists in this process only."""
    sources, paths = host.sources, set()

    def located(text: str, bases: Iterable[Path]) -> str:
        path = _path_of(text, bases)
        if path is None:
            return text
        paths.add(path)
        return str(path)

    project = tuple((kind, located(text, (base,)), base) for kind, text, base in sources.project if kind in KINDS)
    command_line = tuple((kind, located(text, sources.bases)) for kind, text in sources.command_line if kind in KINDS)
    moved = replace(sources, project=project, command_line=command_line, bases=())
    for item in sources.objects:
        _check_travels(item)
    return LocalPlugins(moved, frozenset(paths))


def _check_travels(item: object) -> None:
    try:
        packed(item)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        name = getattr(item, "name", None) or getattr(item, "__name__", type(item).__name__)
        raise BackendError(
            f"plugin '{name}' exists in this process only, so workers cannot have it",
            code=UNSUPPORTED,
            hints=("give it as an installed distribution or by its path, or use --backend local",),
        ) from error


def _path_of(text: str, bases: Iterable[Path]) -> Path | None:
    """The path that a specifier means; None for names of what is installed."""
    looks_like_one = "/" in text or "\\" in text or text.startswith(".") or text.endswith(".py")
    found = next((base / text for base in bases if (base / text).exists()), None)
    if found is None or not (looks_like_one or (found.is_dir() and not _is_installed(text))):
        return None
    return found.resolve()


def _is_installed(name: str) -> bool:
    from importlib.util import find_spec

    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        spec = find_spec(name) if name.isidentifier() else None
        return spec is not None and spec.origin is not None
    return True


def host_plan(plugins: LocalPlugins, bundle: str | None) -> HostPlan:
    """What a worker is told; equal hosts have equal keys."""
    key = hashlib.sha256(packed((plugins.sources, bundle))).hexdigest()[:32]
    return HostPlan(key=key, sources=plugins.sources, bundle=bundle)


def make_host(plan: HostPlan, root: Path | None) -> PluginHost:
    """The host on a worker; local plugins lie below `root`."""
    sources = plan.sources
    if root is not None:
        place = root

        def moved(text: str) -> str:
            path = mirrored(Path(text), place)
            return str(path) if Path(text).is_absolute() and path.exists() else text

        sources = replace(
            sources,
            project=tuple((kind, moved(text), mirrored(base, place)) for kind, text, base in sources.project),
            command_line=tuple((kind, moved(text)) for kind, text in sources.command_line),
        )
    return PluginHost(sources=sources)


def loaded_versions(host: PluginHost) -> dict[str, str]:
    """Versions of vally and of the distributions whose plugins a host has loaded, local ones aside."""
    found = {KERNEL: __version__}
    for kind in KINDS:
        for record in host.records(kind).values():
            source = host.source_of(record)
            if source is not None and source.owner is not None and source.path is None and source.owner.version:
                found[source.owner.name] = source.owner.version
    return dict(sorted(found.items()))


def version_problem(wanted: Mapping[str, str]) -> str | None:
    """What differs here from the versions of the driver, in words; None when nothing does."""
    for name, version in wanted.items():
        here = __version__ if name == KERNEL else _installed_version(name)
        if here is None:
            return f"'{name}' is not installed there, the driver has {version}"
        if here != version:
            return f"'{name}' is {here} there, the driver has {version}"
    return None


def _installed_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
