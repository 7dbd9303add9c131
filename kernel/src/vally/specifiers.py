"""Plugin specifiers of options and project files: what a text such as `./tools/http.py` or `acme` means."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from vally.discovery import Owner, PluginSource, normalised
from vally.errors import PluginError
from vally.records import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_JAVASCRIPT = (".ts", ".mts", ".js", ".mjs")
_ATTRIBUTE = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


class Specifier(NamedTuple):
    """A specifier as written, where it stands, and the directories that local paths start from, in order."""

    kind: str
    text: str
    origin: Literal["project", "option"] = "option"
    bases: tuple[Path, ...] = ()


class Resolution(NamedTuple):
    """The sources a specifier means, and one-line warnings about how it was read."""

    sources: tuple[PluginSource, ...]
    warnings: tuple[str, ...] = ()


def load_failed(label: str, reason: str, hints: Iterable[str] = ()) -> PluginError:
    """The error for a plugin that a user named and that cannot be used."""
    return PluginError(f"plugin '{label}': {reason}", code="plugin-load-failed", hints=tuple(hints))


def refuse_javascript(text: str) -> None:
    """Raise `PluginError` for a specifier of a JavaScript plugin."""
    if text.startswith("@") or text.endswith(_JAVASCRIPT):
        raise PluginError(
            f"plugin '{text}' is a JavaScript plugin; this program loads Python plugins only",
            code="plugin-load-failed",
        )


def is_path(text: str) -> bool:
    """Whether a specifier is a path and only a path."""
    return "/" in text or "\\" in text or text.startswith(".") or text.endswith(".py")


def resolve(
    specifier: Specifier, installed: Sequence[PluginSource], left_out: Sequence[PluginSource] = ()
) -> Resolution:
    """Return what a specifier means: the first form of the table that applies.

    `installed` are the entry points that may be used, `left_out` those of distributions switched off by name. Raises
    `PluginError` when nothing matches, with near matches.
    """
    text = specifier.text
    refuse_javascript(text)
    if is_path(text):
        found, warnings = _existing(specifier)
        return Resolution(_path_sources(specifier, found), warnings)
    sources = (
        _by_entry_point(specifier, installed)
        or _by_distribution(specifier, installed)
        or _by_attribute(specifier)
        or _by_module(specifier)
    )
    if sources:
        return Resolution(sources)
    if any((base / text).is_dir() for base in specifier.bases):
        found, warnings = _existing(specifier)
        return Resolution(_path_sources(specifier, found), warnings)
    raise _nothing_matches(specifier, installed, left_out)


def _nothing_matches(
    specifier: Specifier, installed: Sequence[PluginSource], left_out: Sequence[PluginSource] = ()
) -> PluginError:
    from vally.text.suggest import did_you_mean

    off = next((source.owner for source in left_out if _offers(source, specifier)), None)
    if off is not None:
        return load_failed(specifier.text, f"{off.name} is left out by --no-plugin")
    known = {source.label for source in installed if source.kind == specifier.kind}
    known |= {source.owner.name for source in installed if source.kind == specifier.kind and source.owner}
    hint = did_you_mean(specifier.text, known)
    return load_failed(
        specifier.text, "no entry point, distribution, module or path of that name", [hint] if hint else []
    )


def _offers(source: PluginSource, specifier: Specifier) -> bool:
    return source.kind == specifier.kind and (
        source.label == specifier.text
        or (source.owner is not None and normalised(source.owner.name) == normalised(specifier.text))
    )


def _by_entry_point(specifier: Specifier, installed: Sequence[PluginSource]) -> tuple[PluginSource, ...]:
    offers = [source for source in installed if source.kind == specifier.kind and source.label == specifier.text]
    if len(offers) > 1:
        titles = [source.title for source in offers]
        raise load_failed(
            specifier.text,
            f"offered by {' and '.join(titles)}",
            ["name the distribution instead of the entry point"],
        )
    return tuple(source._replace(origin=specifier.origin) for source in offers)


def _by_distribution(specifier: Specifier, installed: Sequence[PluginSource]) -> tuple[PluginSource, ...]:
    wanted = normalised(specifier.text)
    return tuple(
        source._replace(origin=specifier.origin, label=specifier.text)
        for source in installed
        if source.kind == specifier.kind and source.owner and normalised(source.owner.name) == wanted
    )


def _by_attribute(specifier: Specifier) -> tuple[PluginSource, ...]:
    match = _ATTRIBUTE.fullmatch(specifier.text)
    return (_source(specifier, match[1], match[2]),) if match else ()


def _by_module(specifier: Specifier) -> tuple[PluginSource, ...]:
    if _MODULE.fullmatch(specifier.text) and _importable(specifier):
        return (_source(specifier, specifier.text),)
    return ()


def _importable(specifier: Specifier) -> bool:
    # Finding `a.b` imports `a`, which may do anything.
    from vally.guard import guarded, reason_of

    top = specifier.text.partition(".")[0]
    for name in dict.fromkeys((top, specifier.text)):
        found, error = guarded(_find_spec, name)
        if error is not None:
            raise load_failed(specifier.text, reason_of(error))
        # A directory without __init__.py is a namespace package; it is left to the rule for paths.
        if found is None or found.origin is None:
            return False
    return True


def _find_spec(name: str) -> Any:
    import importlib.util

    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        # `a.b.c` where `a.b` is no package.
        if error.name and name.startswith(error.name):
            return None
        raise


def _source(specifier: Specifier, module: str, attribute: str | None = None, **fields: Any) -> PluginSource:
    return PluginSource(specifier.kind, specifier.text, module, attribute, origin=specifier.origin, **fields)


def _existing(specifier: Specifier) -> tuple[Path, tuple[str, ...]]:
    found = [path for base in specifier.bases if (path := base / specifier.text).exists()]
    if not specifier.bases and Path(specifier.text).is_absolute() and Path(specifier.text).exists():
        found = [Path(specifier.text)]
    if not found:
        looked = ", ".join(dict.fromkeys(base.as_posix() for base in specifier.bases))
        raise load_failed(
            specifier.text,
            "no entry point, distribution, module or path of that name",
            [f"looked in {looked}"] if looked else [],
        )
    others = [path for path in found[1:] if path.resolve() != found[0].resolve()]
    if not others:
        return found[0], ()
    return found[0], (f"plugin '{specifier.text}': {found[0]} is used, not {others[0]}",)


def _path_sources(specifier: Specifier, path: Path) -> tuple[PluginSource, ...]:
    real = path.resolve()
    if real.is_file() and real.suffix == ".py":
        return (file_source(specifier, real),)
    if (real / "pyproject.toml").is_file():
        return _project_sources(specifier, real)
    if (real / "__init__.py").is_file():
        return (_package_source(specifier, real),)
    if (real / "plugin.py").is_file():
        return (file_source(specifier, (real / "plugin.py").resolve()),)
    raise load_failed(specifier.text, f"{specifier.text} is not a plugin: no pyproject.toml, __init__.py or plugin.py")


def file_source(specifier: Specifier, real: Path) -> PluginSource:
    """Return the source for a single file, whose module name is made from its real path."""
    digest = hashlib.sha256(str(real).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return _source(specifier, f"vally_file_{digest}", file=real, path=real)


def _package_source(specifier: Specifier, real: Path) -> PluginSource:
    if not real.name.isidentifier():
        raise load_failed(specifier.text, f"'{real.name}' cannot be imported: it is not a Python identifier")
    module = f"{real.name}.plugin" if (real / "plugin.py").is_file() else real.name
    return _source(specifier, module, import_root=real.parent, path=real)


def _project_sources(specifier: Specifier, real: Path) -> tuple[PluginSource, ...]:
    project = _project_table(specifier, real / "pyproject.toml")
    group = KINDS[specifier.kind].group
    points = project.get("entry-points", {}).get(group, {})
    if not points:
        raise load_failed(specifier.text, f"{specifier.text} declares no entry point in {group}")
    root = real / "src" if (real / "src").is_dir() else real
    owner = Owner(
        str(project.get("name", real.name)), project.get("version"), tuple(map(str, project.get("dependencies", ())))
    )
    values = (str(points[name]).partition(":") for name in sorted(points))
    return tuple(
        _source(specifier, module.strip(), attribute.strip() or None, owner=owner, import_root=root, path=real)
        for module, _, attribute in values
    )


def _project_table(specifier: Specifier, file: Path) -> dict[str, Any]:
    import tomllib

    try:
        project = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {})
    except (OSError, ValueError) as error:
        raise load_failed(specifier.text, f"{file.name}: {error}") from None
    return project if isinstance(project, dict) else {}
