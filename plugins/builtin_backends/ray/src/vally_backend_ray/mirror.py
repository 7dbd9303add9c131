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

TOP = "fs"
"""The directory of an unpacked bundle that stands for the root directory."""


def inside(path: Path) -> PurePosixPath:
    """Where a path of the driver lies in a bundle, relative to its root."""
    return PurePosixPath(path.as_posix().lstrip("/"))


def mirrored(path: Path, root: Path) -> Path:
    """Where a worker has what the driver has at an absolute path."""
    return root / inside(path)


def map_paths(value: Any, change: Callable[[Path], Path]) -> Any:
    """A copy of frozen data with all paths changed; what holds none may be returned as it is."""
    if isinstance(value, Path):
        return change(value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {}
        for field in fields(value):
            old = getattr(value, field.name)
            new = map_paths(old, change)
            if new is not old:
                changed[field.name] = new
        return replace(value, **changed) if changed else value
    if isinstance(value, Mapping):
        items = {key: map_paths(item, change) for key, item in value.items()}
        return value if all(items[key] is item for key, item in value.items()) else items
    if isinstance(value, (list, tuple)):
        parts = [map_paths(item, change) for item in value]
        same = all(new is old for new, old in zip(parts, value, strict=True))
        return value if same else type(value)(parts)
    return value


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A copy of data with all texts changed; models, dataclasses, mappings and lists are entered."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, BaseModel):
        update = {name: map_texts(item, change) for name, item in value.__dict__.items()}
        extra = {name: map_texts(item, change) for name, item in (value.model_extra or {}).items()}
        return value.model_copy(update={**update, **extra})
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: map_texts(getattr(value, field.name), change) for field in fields(value)})
    if isinstance(value, Mapping):
        return {map_texts(key, change): map_texts(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([map_texts(item, change) for item in value])
    return value


class Homeward:
    """Turns paths of a worker into those that the driver knows the same things by.

    `pairs` are (prefix on the worker, prefix on the driver); longer ones are looked for first.
    """

    def __init__(self, pairs: Mapping[str, str]) -> None:
        self._pairs = sorted(((here, there) for here, there in pairs.items()), key=lambda pair: -len(pair[0]))

    def text(self, text: str) -> str:
        """A text with the driver's paths."""
        for here, there in self._pairs:
            if here in text:
                text = text.replace(here, there)
        return text

    def concerns(self, data: bytes) -> bool:
        """Whether packed data holds any path of the worker."""
        return any(here.encode("utf-8", "surrogatepass") in data for here, _ in self._pairs)
