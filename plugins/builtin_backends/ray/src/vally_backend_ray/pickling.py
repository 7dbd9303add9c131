"""What passes between processes, as bytes: pickles, because all of them run the same versions of everything."""

from __future__ import annotations

import io
import pickle
from types import MappingProxyType
from typing import Any


def _read_only(items: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(items)


class _Pickler(pickle.Pickler):
    """Read-only mappings, which specs are full of, travel as copies."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is MappingProxyType:
            return _read_only, (dict(value),)
        return NotImplemented


def packed(value: object) -> bytes:
    """The bytes of a value; raises what its parts raise when they cannot be taken along."""
    buffer = io.BytesIO()
    _Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


def unpacked(data: bytes) -> Any:
    """The value that `packed` was given; only for bytes that come from another process of this very run."""
    return pickle.loads(data)
