"""Which variables of this machine's processes are meant for those in a container."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Variables:
    """What of an environment made for this machine is meant for a container.

    `dropped` are variables, with their values, that tell of this machine or are not for these processes; `private` are
    those that are set when the environment has none left. `search` are directories of this machine that can be found
    after those of the image.
    """

    trial_id: str
    dropped: Mapping[str, str] = field(default_factory=dict)
    private: Mapping[str, str] = field(default_factory=dict)
    image_path: str = os.defpath
    search: tuple[Path, ...] = ()

    def inside(self, env: Mapping[str, str]) -> dict[str, str]:
        """The environment of a process in the container."""
        kept = {name: value for name, value in env.items() if self.dropped.get(name) != value}
        return {**self.private, **kept, "PATH": self._path(env.get("PATH", "")), "VALLY_TRIAL": self.trial_id}

    def _path(self, given: str) -> str:
        here = [
            place for place in given.split(os.pathsep) if any(Path(place).is_relative_to(top) for top in self.search)
        ]
        return os.pathsep.join(dict.fromkeys([*self.image_path.split(os.pathsep), *here]))
