"""Importing plugin modules: stevedore loads, a guard turns whatever a module does into a failure to remember."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stevedore.named import NamedExtensionManager

from vally.discovery import entry_point, kernel_requirement
from vally.guard import Rejected, guarded
from vally.guard import import_string as import_string
from vally.records import API_VERSION, KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vally.discovery import PluginSource


class Loaded(NamedTuple):
    """What an import gave: the module or attribute, or the error; `error` is None after success."""

    target: Any
    error: BaseException | None = None


class _Exit(Exception):
    """Carries what stevedore itself would let through, such as SystemExit and AssertionError."""


class _Loader(NamedExtensionManager[Any]):
    """Loads given sources by name, without reading installed metadata or the on-disk cache of stevedore."""

    def __init__(self, group: str, sources: Sequence[PluginSource]) -> None:
        self._sources = {str(index): source for index, source in enumerate(sources)}
        self.errors: dict[str, BaseException] = {}
        super().__init__(
            group,
            list(self._sources),
            on_load_failure_callback=self._remember,
            on_missing_entrypoints_callback=None,
        )

    def list_entry_points(self) -> list[Any]:
        return [entry_point(name, source) for name, source in self._sources.items()]

    def _load_one_plugin(self, ep: Any, *args: Any) -> Any:
        extension, error = guarded(self._import, ep, args)
        if error is not None:
            raise _Exit from error
        return extension

    def _import(self, ep: Any, args: tuple[Any, ...]) -> Any:
        make_importable(self._sources[ep.name])
        return super()._load_one_plugin(ep, *args)

    def _remember(self, _: Any, ep: Any, error: BaseException) -> None:
        if isinstance(error, MemoryError):
            raise error
        self.errors[ep.name] = error.__cause__ or error

    def results(self) -> list[Loaded]:
        """What became of each source, in order."""
        loaded = {extension.name: extension.plugin for extension in self.extensions}
        return [Loaded(loaded.get(name), self.errors.get(name)) for name in self._sources]


def load(kind: str, sources: Sequence[PluginSource]) -> list[Loaded]:
    """Import sources of one kind, in order; never raises for what a plugin does."""
    return _Loader(KINDS[kind].group, sources).results()


def make_importable(source: PluginSource) -> None:
    """Prepare the import of an explicit path: a single file becomes a module, a package gets its import root."""
    if source.file is not None:
        _import_file(source.module, source.file)
    elif source.import_root is not None:
        _add_root(source.module.partition(".")[0], source.import_root)


def _import_file(name: str, file: Path) -> None:
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise Rejected(f"{file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pydantic look their module up while it is being executed.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _add_root(package: str, root: Path) -> None:
    elsewhere = _imported_from(package)
    if elsewhere is not None and root.resolve() not in elsewhere.parents:
        raise Rejected(f"package '{package}' is already imported from {elsewhere}")
    text = str(root)
    if sys.path[:1] != [text]:
        if text in sys.path:
            sys.path.remove(text)
        sys.path.insert(0, text)
    importlib.invalidate_caches()


def _imported_from(package: str) -> Path | None:
    module = sys.modules.get(package)
    if module is None:
        return None
    places = [*(getattr(module, "__path__", None) or []), getattr(module, "__file__", None)]
    return next((Path(place).resolve() for place in places if place), Path("<built-in>"))


def api_problem(source: PluginSource, kernel_version: str) -> str | None:
    """Return why a plugin was written for another version of the API; None when it fits or says nothing.

    `vally_api` of the module counts; without it, the requirement of its distribution on the kernel.
    """
    module = source.target if source.target is not None else sys.modules.get(source.module)
    stated = getattr(module, "vally_api", None)
    if stated is None:
        return requirement_problem(source, kernel_version)
    if not isinstance(stated, int) or isinstance(stated, bool):
        return f"vally_api must be an integer, not {stated!r}"
    if stated != API_VERSION:
        return f"needs plugin API {stated}, this program provides {API_VERSION}"
    return None


def requirement_problem(source: PluginSource, kernel_version: str) -> str | None:
    """Return the unmet requirement of a plugin's distribution on the kernel, or None."""
    wanted = kernel_requirement(source.owner.requires) if source.owner else None
    if wanted is None:
        return None
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        fits = SpecifierSet(wanted).contains(kernel_version, prereleases=True)
    except InvalidSpecifier:
        return f"its requirement 'vally-kernel {wanted}' is not valid"
    return None if fits else f"needs vally-kernel {wanted}, this is {kernel_version}"
