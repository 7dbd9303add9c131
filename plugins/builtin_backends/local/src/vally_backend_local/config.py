"""Arguments of the backend."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from vally import Config, UsageError, did_you_mean

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kmgt]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def parse_size(value: object) -> int:
    """Return the bytes of a size such as `512m` or `4g`; units are powers of 1024, a bare number counts bytes."""
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"a size such as '512m' or '4g' is expected, not {value!r}")
    return int(float(match[1]) * _UNITS[match[2].lower()])


Size = Annotated[int, BeforeValidator(parse_size)]


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class LocalArgs(Config):
    """`disk-limit` bounds workspace and trial directory together, `min-free` is what a file system must have left."""

    model_config = ConfigDict(alias_generator=_kebab)

    disk_limit: Size = Field(default=10 * 2**30)
    min_free: Size = Field(default=2**30)


def parse_args(args: Mapping[str, str | list[str]]) -> LocalArgs:
    """Validate the values of `--backend-args`. Raises UsageError."""
    names = {field.alias or name for name, field in LocalArgs.model_fields.items()}
    for name in args:
        if name not in names:
            hint = did_you_mean(name, names) or f"known arguments: {', '.join(sorted(names))}"
            raise UsageError(f"--backend-args: unknown argument '{name}'", hints=(hint,))
    try:
        return LocalArgs.model_validate(dict(args))
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        problem = found["msg"].removeprefix("Value error, ")
        raise UsageError(f"--backend-args: invalid value of '{found['loc'][0]}': {problem}") from None
