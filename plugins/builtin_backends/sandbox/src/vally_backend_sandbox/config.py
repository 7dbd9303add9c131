"""Arguments of the backend."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import PlainValidator, ValidationInfo, field_validator

from vally import AgentNetwork
from vally_backend_local import LocalArgs, Memory, ProcessCount

Network = Literal["none", "model", "host"]
PlainNetwork = Literal["none", "host"]


def _paths(value: object) -> tuple[Path, ...]:
    """One path or several; they are absolute, because nobody could tell what others would be relative to."""
    given: list[object] = value if isinstance(value, list) else [value]
    found = []
    for item in given:
        if not isinstance(item, str) or not Path(item).is_absolute():
            raise ValueError(f"an absolute path is expected, not {item!r}")
        if not os.access(item, os.F_OK):
            raise ValueError(f"path {item!r} does not exist")
        if Path(item).resolve() == Path("/"):
            raise ValueError("the root directory as a whole cannot be shown or hidden")
        found.append(Path(item))
    return tuple(found)


# Not before another check: that of JSON takes no paths, only texts.
Paths = Annotated[tuple[Path, ...], PlainValidator(_paths, json_schema_input_type=str | list[str])]


class SandboxArgs(LocalArgs):
    """Beside those of `local`: the network of each part, paths, and limits.

    With the network `model` an agent reaches the endpoint that its config names as `provider`, and nothing else.
    `memory` (bytes of address space) holds for each process, `pids` for all that one started process starts. `ro` and
    `rw` are paths the agent may see or write as well, `hide` those it may not see.
    """

    network: Network = "model"
    grade_network: PlainNetwork = "none"
    setup_network: PlainNetwork = "host"
    ro: Paths = ()
    rw: Paths = ()
    hide: Paths = ()
    memory: Memory | None = None
    pids: ProcessCount | None = None

    @property
    def agent_network(self) -> AgentNetwork:
        """What processes of agents reach."""
        return self.network

    @field_validator("grade_network", "setup_network", mode="before")
    @classmethod
    def _only_agents_ask_models(cls, value: object, info: ValidationInfo) -> object:
        if value == "model":
            name = str(info.field_name).replace("_", "-")
            raise ValueError(f"'{name}' cannot be 'model', because only agents have one to ask; use 'none' or 'host'")
        return value
