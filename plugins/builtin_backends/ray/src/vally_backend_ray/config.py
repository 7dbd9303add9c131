"""Arguments of the backend."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, field_validator

from vally_backend_local import BackendArgs, Size

MOST_WORKERS = 100_000
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ADDRESS = re.compile(r"auto|[^\s/:]+:\d{1,5}|\[[0-9A-Fa-f:]+\]:\d{1,5}")


def _whole(value: object) -> int:
    if isinstance(value, str) and re.fullmatch(r"\d{1,6}", value.strip()) and int(value) <= MOST_WORKERS:
        return int(value)
    raise ValueError(f"a whole number up to {MOST_WORKERS} is expected, not {value!r}")


def _positive(value: object) -> int:
    number = _whole(value)
    if number < 1:
        raise ValueError("at least 1 is expected, not '0'")
    return number


def _amount(value: object) -> float:
    if isinstance(value, str) and re.fullmatch(r"\d{1,6}(\.\d{1,4})?", value.strip()) and float(value) > 0:
        return float(value)
    raise ValueError(f"a number above 0 such as '0.5' or '4' is expected, not {value!r}")


def _pairs(value: object) -> tuple[tuple[str, str], ...]:
    """`name=value` once or several times; the parts are not empty."""
    found = []
    for text in value if isinstance(value, list) else [value]:
        name, equals, rest = str(text).partition("=")
        if not (name.strip() and equals and rest.strip()):
            raise ValueError(f"name=value is expected, not {text!r}")
        found.append((name.strip(), rest.strip()))
    return tuple(found)


def _resources(value: object) -> tuple[tuple[str, float], ...]:
    found = tuple((name, _amount(amount)) for name, amount in _pairs(value))
    reserved = {"CPU": "cpus", "memory": "memory"}
    for name, _ in found:
        if name in reserved:
            raise ValueError(f"'{name}' is set by the argument '{reserved[name]}'")
    if len({name for name, _ in found}) < len(found):
        raise ValueError("a resource is given twice")
    return found


def _variables(value: object) -> tuple[str, ...]:
    names = tuple(str(name) for name in (value if isinstance(value, list) else [value]))
    for name in names:
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"the name of an environment variable is expected, not {name!r}")
    return names


Whole = Annotated[int, BeforeValidator(_whole)]
Positive = Annotated[int, BeforeValidator(_positive)]
Amount = Annotated[float, BeforeValidator(_amount)]
Resources = Annotated[tuple[tuple[str, float], ...], BeforeValidator(_resources)]
Pairs = Annotated[tuple[tuple[str, str], ...], BeforeValidator(_pairs)]
Variables = Annotated[tuple[str, ...], BeforeValidator(_variables)]


class RayArgs(BackendArgs):
    """Where the cluster is, how large a worker is, and what it does.

    Without `address` a cluster is started on this machine. `workers` is the number of worker processes, `slots` how
    many trials each runs at once; `cpus`, `memory` (bytes) and `resources` are reserved for each worker. `inner` is the
    backend that runs trials inside a worker, with `inner_arg` as its arguments. `env` names variables of this process
    that workers get; `max_losses` is how often an item may lose its worker before it is an error.
    """

    changeable: ClassVar[frozenset[str]] = frozenset({"address", "workers", "slots", "max-losses"})

    address: str | None = None
    workers: Positive | None = None
    slots: Positive = 4
    resources: Resources = ()
    memory: Size | None = None
    cpus: Amount = 1.0
    inner: str = "local"
    inner_arg: Pairs = ()
    max_losses: Whole = 2
    env: Variables = ()

    @field_validator("address")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is not None and value.startswith("ray://"):
            raise ValueError(
                "Ray Client addresses (ray://) are not supported; run vally on a machine of the cluster, with "
                "address=auto or address=<host>:<port of the head node>"
            )
        if value is not None and not _ADDRESS.fullmatch(value):
            raise ValueError(f"'auto' or <host>:<port> is expected, not {value!r}")
        return value

    @field_validator("inner")
    @classmethod
    def _is_another(cls, value: str) -> str:
        if value == "ray":
            raise ValueError("'inner' must be another backend, such as 'local' or 'sandbox'")
        return value

    @property
    def inner_args(self) -> dict[str, str | list[str]]:
        """What the inner backend is given; a key that was given twice has a list."""
        found: dict[str, str | list[str]] = {}
        for name, value in self.inner_arg:
            earlier = found.get(name)
            found[name] = value if earlier is None else [*([earlier] if isinstance(earlier, str) else earlier), value]
        return found
