"""A copy of a trajectory that plugins may change without changing the record."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)


def detached(model: M) -> M:
    """Copy a record model with all models, mappings and lists in it; texts and numbers are shared."""
    copy: M = _copied(model, {})
    return copy


def _copied(value: Any, copies: dict[int, Any]) -> Any:
    # What was copied before is found again, so that values that contain themselves stay finite.
    if not isinstance(value, (dict, list, BaseModel)):
        return value
    known = copies.get(id(value))
    if known is not None:
        return known
    if isinstance(value, BaseModel):
        return _copied_model(value, copies)
    if isinstance(value, dict):
        mapping = copies[id(value)] = {}
        mapping.update((key, _copied(item, copies)) for key, item in value.items())
        return mapping
    items = copies[id(value)] = []
    items.extend(_copied(item, copies) for item in value)
    return items


def _copied_model(model: BaseModel, copies: dict[int, Any]) -> BaseModel:
    copy = copies[id(model)] = model.model_copy()
    for fields in (copy.__dict__, copy.__pydantic_extra__ or {}):
        for name, item in fields.items():
            if isinstance(item, (dict, list, BaseModel)):
                fields[name] = _copied(item, copies)
    return copy
