"""A copy of a trajectory that plugins may change without changing the record."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel

from vally.model.plain_events import copied_event
from vally.model.trajectory import Event

M = TypeVar("M", bound=BaseModel)
_UNCHANGING = frozenset({str, int, float, bool, type(None)})


def detached(model: M) -> M:
    """Copy a record model with all models, mappings and lists in it; texts and numbers are shared."""
    copy: M = _Copying().copy(model)
    return copy


class _Copying:
    """Copies containers with a list of what is still to fill, because tool arguments may be nested without bound."""

    def __init__(self) -> None:
        # What was copied before is found again, so that values that contain themselves stay finite.
        self._copies: dict[int, Any] = {}
        self._unfilled: list[tuple[Any, Any]] = []

    def copy(self, value: Any) -> Any:
        copied = self._of(value)
        while self._unfilled:
            self._fill(*self._unfilled.pop())
        return copied

    def _of(self, value: Any) -> Any:
        if type(value) in _UNCHANGING or not isinstance(value, (dict, list, BaseModel)):
            return value
        if id(value) not in self._copies:
            empty: Any = value.model_copy() if isinstance(value, BaseModel) else {} if isinstance(value, dict) else []
            self._copies[id(value)] = empty
            self._unfilled.append((value, empty))
        return self._copies[id(value)]

    def _item(self, item: Any) -> Any:
        # Events are most of a trajectory; each stands in it once, so it need not be found again.
        return (copied_event(item) if type(item) is Event else None) or self._of(item)

    def _fill(self, value: Any, copy: Any) -> None:
        if isinstance(value, dict):
            copy.update((key, self._of(item)) for key, item in value.items())
        elif isinstance(value, list):
            copy.extend([self._item(item) for item in value])
        else:
            for fields in (copy.__dict__, copy.__pydantic_extra__ or {}):
                for name, item in fields.items():
                    fields[name] = self._of(item)
