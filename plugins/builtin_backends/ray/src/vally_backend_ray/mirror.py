"""Paths of the driver's machine, and where workers have what lies there.

A bundle holds files at the paths they have on the driver, below a root that differs from node to node. So relative
paths in specs mean the same, and going back is taking the root away again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel

from vally import BackendError
from vally_backend_ray.codes import FAILED

TOP = "fs"
"""The directory of an unpacked bundle that stands for the root directory."""


def inside(path: Path) -> PurePosixPath:
    """Where a path of the driver lies in a bundle, relative to its root."""
    return PurePosixPath(path.as_posix().lstrip("/"))


def mirrored(path: Path, root: Path) -> Path:
    """Where a worker has what the driver has at an absolute path."""
    return root / inside(path)


def checked_name(name: str) -> PurePosixPath:
    """A relative path that stays where it is put. Raises `BackendError` for any other."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise BackendError(f"a worker names a file '{name}', which leaves its directory", code=FAILED)
    return path


def map_paths(value: Any, change: Callable[[Path], Path]) -> Any:
    """A copy of data with all paths changed; parts that hold none stay the same objects."""
    return _mapped(value, lambda leaf: change(leaf) if isinstance(leaf, Path) else leaf)


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A copy of data with all texts and paths changed, keys included; parts that stay alike stay the same objects."""

    def changed(leaf: Any) -> Any:
        if isinstance(leaf, Path):
            text = change(str(leaf))
            return leaf if text == str(leaf) else Path(text)
        return change(leaf) if isinstance(leaf, str) else leaf

    return _mapped(value, changed)


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Enter models, dataclasses, mappings, lists and tuples, and change what lies in them."""
    if isinstance(value, BaseModel):
        # Which fields were set is part of a record, so those that did not change are left alone.
        update = _changed({**value.__dict__, **(value.model_extra or {})}, change)
        return value.model_copy(update=update) if update else value
    if is_dataclass(value) and not isinstance(value, type):
        update = _changed({field.name: getattr(value, field.name) for field in fields(value)}, change)
        return replace(value, **update) if update else value
    if isinstance(value, Mapping):
        items = {change(key): _mapped(item, change) for key, item in value.items()}
        same = items.keys() == value.keys() and all(items[key] is item for key, item in value.items())
        return value if same else items
    if isinstance(value, (list, tuple)):
        parts = [_mapped(item, change) for item in value]
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else type(value)(parts)
    return change(value)


def _changed(items: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    mapped = {name: _mapped(item, change) for name, item in items.items()}
    return {name: mapped[name] for name, item in items.items() if mapped[name] is not item}


class Homeward:
    """Turns paths of a worker into those that the driver knows the same things by.

    `pairs` are (prefix on the worker, prefix on the driver); longer ones are looked for first.
    """

    def __init__(self, pairs: Mapping[str, str]) -> None:
        self._pairs = sorted(((here, there) for here, there in pairs.items()), key=lambda pair: -len(pair[0]))

    def text(self, text: str) -> str:
        """A text with the driver's paths."""
        for here, there in self._pairs:
            text = text.replace(here, there)
        return text

    def concerns(self, data: bytes) -> bool:
        """Whether packed data holds any path of the worker."""
        return any(here.encode("utf-8", "surrogatepass") in data for here, _ in self._pairs)
