"""Arguments of the backend."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field

from vally import Config

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kmgt]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
MOST = 2**20 * _UNITS["t"]
"""More than any machine has, and what limits of processes and containers still take."""


def parse_size(value: object) -> int:
    """Return the bytes of a size such as `512m` or `4g`; units are powers of 1024, a bare number counts bytes."""
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"a size such as '512m' or '4g' is expected, not {value!r}")
    size = float(match[1]) * _UNITS[match[2].lower()]
    if size > MOST:
        raise ValueError(f"a size of at most {MOST // _UNITS['t']}t is expected")
    return int(size)


Size = Annotated[int, BeforeValidator(parse_size)]


LEAST_MEMORY = 64 * 2**20
"""With less than this hardly any program can be loaded."""


def _memory(value: object) -> int:
    size = parse_size(value)
    if size < LEAST_MEMORY:
        raise ValueError("'memory' must be at least 64m")
    return size


def _count(value: object) -> int:
    if isinstance(value, str) and re.fullmatch(r"[1-9]\d{0,6}", value.strip()):
        return int(value)
    raise ValueError(f"a number of processes such as '256' is expected, not {value!r}")


Memory = Annotated[int, BeforeValidator(_memory)]
ProcessCount = Annotated[int, BeforeValidator(_count)]


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class BackendArgs(Config):
    """Arguments as `--backend-args` has them: with hyphens in their names."""

    model_config = ConfigDict(alias_generator=_kebab)


class LocalArgs(BackendArgs):
    """`disk-limit` bounds workspace and trial directory together, `min-free` is what a file system must have left."""

    disk_limit: Size = Field(default=10 * 2**30)
    min_free: Size = Field(default=2**30)
