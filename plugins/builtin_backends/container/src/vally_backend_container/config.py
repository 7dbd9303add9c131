"""Arguments of the backends."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainValidator, field_validator, model_validator

from vally import AgentNetwork, parse_duration
from vally_backend_container.platforms import parse_platform
from vally_backend_local import LocalArgs, Memory, ProcessCount

_NETWORK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?")
_RESERVED_TARGETS = tuple(map(Path, ("/proc", "/sys", "/dev")))
_FORBIDDEN_ARGS = {
    "--network": "network",
    "--net": "network",
    "--memory": "memory",
    "--pids-limit": "pids",
    "--user": "user",
    "--volume": "mount",
    "-v": "mount",
    "-u": "user",
    "-m": "memory",
}
"""Options of the engine that would silently undo what an argument of the backend promises."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A path of this machine at a path of a container."""

    source: Path
    target: Path
    read_only: bool = True


def _cpus(value: object) -> float:
    if isinstance(value, str) and re.fullmatch(r"\d{1,4}(\.\d{1,3})?", value.strip()) and float(value) > 0:
        return float(value)
    raise ValueError(f"a number of processors such as '2' or '0.5' is expected, not {value!r}")


def _duration(value: object) -> float:
    milliseconds = parse_duration(value) if isinstance(value, str) else 0
    if milliseconds <= 0:
        raise ValueError(f"a duration such as '2m' is expected, not {value!r}")
    return milliseconds / 1000


def _words(value: object) -> tuple[str, ...]:
    words = tuple(str(word) for word in value) if isinstance(value, list) else (str(value),)
    for word in words:
        name = word.partition("=")[0]
        if not word.startswith("-"):
            raise ValueError(
                f"an option such as '--shm-size=1g' is expected, not {word!r}; join option and value by '='"
            )
        if name in _FORBIDDEN_ARGS:
            raise ValueError(f"{name!r} is set by the argument '{_FORBIDDEN_ARGS[name]}'")
    return words


def _mounts(value: object) -> tuple[Mount, ...]:
    return tuple(_mount(str(item)) for item in (value if isinstance(value, list) else [value]))


def _mount(text: str) -> Mount:
    source, _, rest = text.partition(":")
    target, _, access = rest.partition(":")
    if not Path(source).is_absolute() or not Path(target).is_absolute() or access not in ("", "ro", "rw"):
        raise ValueError(f"two absolute paths as in '/data:/data:ro' are expected, not {text!r}")
    if not Path(source).exists():
        raise ValueError(f"path {source!r} does not exist")
    place = Path(target)
    if place == Path("/") or any(place.is_relative_to(reserved) for reserved in _RESERVED_TARGETS):
        raise ValueError(f"nothing can be mounted at {target!r}")
    return Mount(Path(source).resolve(), place, access == "ro")


def _network(value: object) -> str:
    if isinstance(value, str) and _NETWORK.fullmatch(value):
        return value
    raise ValueError(f"'none', 'model', 'bridge', 'host' or the name of a network is expected, not {value!r}")


def _user(value: object) -> str:
    if isinstance(value, str) and _USER.fullmatch(value):
        return value
    raise ValueError(f"a user as in '1000', '1000:1000' or 'node' is expected, not {value!r}")


def _platform(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a platform such as 'linux/arm64' is expected, not {value!r}")
    parse_platform(value)
    return value


Cpus = Annotated[float, BeforeValidator(_cpus)]
Seconds = Annotated[float, BeforeValidator(_duration)]
Network = Annotated[str, BeforeValidator(_network)]
User = Annotated[str, BeforeValidator(_user)]
Platform = Annotated[str, BeforeValidator(_platform)]
# Not before another check: that of JSON takes neither paths nor tuples, only texts.
Words = Annotated[tuple[str, ...], PlainValidator(_words, json_schema_input_type=str | list[str])]
Mounts = Annotated[tuple[Mount, ...], PlainValidator(_mounts, json_schema_input_type=str | list[str])]


def agent_network(name: str) -> AgentNetwork:
    """What processes in a network reach, as executors know it: whether they have one at all."""
    return "none" if name == "none" else "model" if name == "model" else "host"


class ContainerArgs(LocalArgs):
    """Beside those of `local`: the image, the network of each part, limits and mounts.

    `memory` and `pids` hold for a container as a whole, `startup_timeout` (seconds) for the start of one. A relative
    `dockerfile` is looked for in the project's directory. `engine_arg` are further options of the engine's `run`.
    """

    image: str | None = Field(default=None, min_length=1)
    dockerfile: str | None = Field(default=None, min_length=1)
    grade_image: str | None = Field(default=None, min_length=1)
    network: Network = "model"
    grade_network: Network = "none"
    setup_network: Network = "bridge"
    memory: Memory = 4 * 2**30
    cpus: Cpus | None = None
    pids: ProcessCount = 512
    mount: Mounts = ()
    user: User | None = None
    platform: Platform | None = None
    runtime: str | None = Field(default=None, min_length=1)
    pull: Literal["missing", "always", "never"] = "missing"
    engine_arg: Words = ()
    startup_timeout: Seconds = 120.0

    @property
    def agent_network(self) -> AgentNetwork:
        """What processes of agents reach; any network of the engine counts as that of this machine."""
        return agent_network(self.network)

    @field_validator("image", "grade_image")
    @classmethod
    def _is_a_name(cls, value: str | None) -> str | None:
        if value is not None and (value.startswith("-") or any(letter.isspace() for letter in value)):
            raise ValueError(f"the name of an image is expected, not {value!r}")
        return value

    @field_validator("grade_network", "setup_network")
    @classmethod
    def _has_no_model(cls, value: str) -> str:
        if value == "model":
            raise ValueError("'model' is for the agent alone: only its executor names a provider")
        return value

    @model_validator(mode="after")
    def _one_source(self) -> ContainerArgs:
        if self.image is not None and self.dockerfile is not None:
            raise ValueError("'image' and 'dockerfile' exclude each other; leave one out")
        return self
