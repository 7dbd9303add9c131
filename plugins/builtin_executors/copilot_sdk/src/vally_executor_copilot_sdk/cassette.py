"""Cassettes: the model calls of a trial in a file, and the reading and writing of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from vally import MAIN_VARIANT, ExecutorError, ExecutorOptions, Stimulus, atomic_write, segment, timestamp

VERSION = 1


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, strict=True)


class Head(_Line):
    """The first line: what was recorded, and with which programs."""

    type: str = Field("cassette", pattern="^cassette$")
    version: int = Field(VERSION, ge=VERSION, le=VERSION)
    wire: dict[str, str | None]
    model: str
    runtime_version: str
    sdk_version: str
    created_at: str


class Request(_Line):
    """What is compared: the hash of a whole request, and its shape (path, roles of messages, names of tools)."""

    hash: str
    shape: dict[str, Any]


class Exchange(_Line):
    """One model call. `n` counts all of them from 0, `agent` is 0 for the first agent that asked."""

    n: int = Field(ge=0)
    agent: int = Field(ge=0)
    method: str
    path: str
    request: Request
    status: int = Field(ge=100, le=599)
    content_type: str
    body: str
    duration_ms: int = Field(ge=0)


@dataclass(frozen=True, slots=True)
class Cassette:
    """Everything in a file."""

    head: Head
    exchanges: tuple[Exchange, ...]

    def of_agent(self, agent: int) -> list[Exchange]:
        """The calls of one agent in order."""
        return [exchange for exchange in self.exchanges if exchange.agent == agent]


def cassette_file(directory: str, stimulus: Stimulus, options: ExecutorOptions, model: str) -> Path:
    """Where the cassette of a trial lies: below `directory`, which is relative to the eval."""
    file, _, rest = options.item_id.partition("::")
    variant, trial = rest.partition("::")[0], options.item_id.rpartition("::")[2]
    of_model = model if variant in ("", MAIN_VARIANT) else f"{variant}-{model}"
    names = (Path(file).name, stimulus.name, of_model)
    return options.spec_dir.joinpath(directory, *map(_own_segment, names), f"{_own_segment(trial)}.jsonl")


def new_head(wire: Mapping[str, str | None], model: str, runtime_version: str, sdk_version: str) -> Head:
    """The first line of a cassette that is recorded now."""
    return Head(
        wire=dict(wire),
        model=model,
        runtime_version=runtime_version,
        sdk_version=sdk_version,
        created_at=timestamp(),
    )


def write_cassette(path: Path, cassette: Cassette) -> None:
    """Write a whole file or none. Blocks; raises `ExecutorError`."""
    lines = [cassette.head, *cassette.exchanges]
    text = "".join(f"{json.dumps(line.model_dump(by_alias=True), ensure_ascii=False)}\n" for line in lines)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, text.encode("utf-8", "replace"))
    except OSError as error:
        message = f"the cassette {path} cannot be written: {error.strerror}"
        raise ExecutorError(message, code="executor-config") from None


def read_cassette(path: Path) -> Cassette:
    """Read a file. Blocks; raises `ExecutorError` that says what is wrong and in which line."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        message = f"there is no cassette {path}; make it with 'cassette: record'"
        raise ExecutorError(message, code="cassette-miss") from None
    except OSError as error:
        raise ExecutorError(f"the cassette {path} cannot be read: {error.strerror}", code="cassette-invalid") from None
    filled = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not filled:
        raise _invalid(path, 1, "the file is empty")
    head = _parsed(Head, path, *filled[0])
    exchanges = tuple(_parsed(Exchange, path, number, line) for number, line in filled[1:])
    for (number, _), (n, exchange) in zip(filled[1:], enumerate(exchanges), strict=True):
        if exchange.n != n:
            raise _invalid(path, number, f"n: expected {n}, found {exchange.n}")
    return Cassette(head, exchanges)


def _parsed(model: type[Any], path: Path, number: int, line: bytes) -> Any:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _invalid(path, number, f"not JSON: {error}") from None
    try:
        return model.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _invalid(path, number, f"{where}: {first['msg']}" if where else str(first["msg"])) from None


def _invalid(path: Path, line: int, problem: str) -> ExecutorError:
    return ExecutorError(f"{path}:{line}: {problem}", code="cassette-invalid")


def _own_segment(name: str) -> str:
    """A file name for this name and no other."""
    text = segment(name)
    return text if text == name else f"{text}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
