"""The templates that this distribution brings along."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_SUFFIX = ".in"


def template(name: str) -> str:
    """The text of a template by the name of the file it makes."""
    return (_root() / f"{name}{_SUFFIX}").read_text(encoding="utf-8")


def templates_below(name: str) -> Iterator[tuple[str, str]]:
    """Relative path and text of all templates in a directory, in order of their paths."""
    yield from _walk(_root() / name, "")


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir():
            yield from _walk(item, f"{prefix}{item.name}/")
        elif item.name.endswith(_SUFFIX):
            yield prefix + item.name.removesuffix(_SUFFIX), item.read_text(encoding="utf-8")


def _root() -> Traversable:
    return files("vally_command_scaffold") / "templates"
