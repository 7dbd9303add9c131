"""Which values of a config mapping are regular expressions, as far as its model says it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from vally.model.config import Pattern

_MARK = Pattern.__metadata__[0]  # type: ignore[attr-defined]  # what makes it a pattern
Place = tuple[str | int, ...]


def pattern_values(model: type[BaseModel] | None, mapping: Mapping[str, object]) -> Iterator[tuple[Place, str]]:
    """The regular expressions in a config as written, each with its place: keys and 0-based indexes."""
    if model is not None:
        yield from _of_model(model, mapping, ())


def _of_model(model: type[BaseModel], mapping: Mapping[str, object], place: Place) -> Iterator[tuple[Place, str]]:
    for key, info in _pattern_fields(model):
        if key in mapping:
            yield from _of_value(info.annotation, bool(_MARK in info.metadata), mapping[key], (*place, key))


@lru_cache(maxsize=1024)
def _pattern_fields(model: type[BaseModel]) -> tuple[tuple[str, FieldInfo], ...]:
    """The fields, by the key as written, in which there may be a pattern."""
    return tuple(
        (info.alias or name, info)
        for name, info in model.model_fields.items()
        if _MARK in info.metadata or _mentions(info.annotation, frozenset({model}))
    )


def _mentions(annotation: Any, above: frozenset[type]) -> bool:
    if get_origin(annotation) is Annotated and _MARK in annotation.__metadata__:
        return True
    if isinstance(annotation, type) and issubclass(annotation, BaseModel) and not get_args(annotation):
        inner = above | {annotation}
        return annotation not in above and any(
            _MARK in info.metadata or _mentions(info.annotation, inner) for info in annotation.model_fields.values()
        )
    return any(_mentions(part, above) for part in get_args(annotation))


def _of_value(annotation: Any, marked: bool, value: object, place: Place) -> Iterator[tuple[Place, str]]:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _of_value(parts[0], marked or _MARK in annotation.__metadata__, value, place)
    elif origin in (Union, UnionType):
        for part in parts:
            yield from _of_value(part, marked, value, place)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel) and origin is None:
        if isinstance(value, Mapping):
            yield from _of_model(annotation, value, place)
        elif isinstance(value, str) and _stands_for(annotation):
            yield place, value
    elif isinstance(value, str) and annotation is str:
        if marked:
            yield place, value
    elif isinstance(value, str) and origin in (list, tuple) and parts:
        # A single text may stand for a list.
        yield from _of_value(parts[0], marked, value, place)
    elif isinstance(value, list) and parts:
        for index, item in enumerate(value):
            yield from _of_value(parts[0], marked, item, (*place, index))
    elif isinstance(value, Mapping) and len(parts) == 2:
        for key, item in value.items():
            yield from _of_value(parts[1], marked, item, (*place, str(key)))


def _stands_for(model: type[BaseModel]) -> bool:
    """Whether a single text in the place of a mapping is a pattern: that of the one field that is required."""
    required = [info for info in model.model_fields.values() if info.is_required()]
    return len(required) == 1 and _MARK in required[0].metadata
