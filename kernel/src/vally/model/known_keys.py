"""The keys that a config model takes at some place inside of it, for suggestions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin

from pydantic import BaseModel

Steps = Sequence[int | str]


def known_keys(model: type[BaseModel], path: Steps) -> list[str]:
    """The keys of the mapping at `path` below a config of this model, sorted; empty where any key may stand."""
    return sorted(set(_keys(model, path)))


def _keys(annotation: Any, path: Steps) -> Iterator[str]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            key = field.alias or name
            if not path:
                yield key
            elif path[0] in (name, key):
                yield from _keys(field.annotation, path[1:])
    else:
        origin = get_origin(annotation)
        is_collection = isinstance(origin, type) and issubclass(origin, (Sequence, Mapping))
        if not is_collection or path:
            for part in get_args(annotation):
                yield from _keys(part, path[1:] if is_collection else path)
