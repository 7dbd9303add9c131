"""Which limits the processes of a container ran into, as its control group and its engine tell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vally_backend_container.config import ContainerArgs
from vally_backend_container.engine import Engine, EngineError

CONTROL_GROUPS = Path("/sys/fs/cgroup")
_COUNTERS = {
    "memory.events": ("memory", "oom_kill"),
    "memory.oom_control": ("memory", "oom_kill"),
    "pids.events": ("pids", "max"),
}
"""File of a control group, of either version: the limit it tells of, and the line that counts."""


@dataclass(frozen=True)
class LimitsHit:
    """How many processes were ended because the memory was full, and how many could not be started."""

    memory: int = 0
    pids: int = 0

    def remarks(self, args: ContainerArgs) -> list[str]:
        """What to tell of it, in one line for each limit."""
        found = []
        if self.memory:
            size = f"{args.memory / 2**20:g} MiB"
            found.append(f"processes in the container were killed: its memory limit of {size} was reached")
        if self.pids:
            found.append(
                f"processes in the container could not be started: its limit of {args.pids} processes was reached"
            )
        return found


async def limits_hit(engine: Engine, container: str) -> LimitsHit:
    """Ask for the limits of a running container, or of one that has ended; what cannot be told counts as not hit."""
    try:
        text = await engine.call("inspect", "--type", "container", "--format", "{{json .State}}", container)
        state = json.loads(text)
    except (EngineError, ValueError):
        return LimitsHit()
    found = counted(int(state.get("Pid") or 0))
    # An engine in a virtual machine has no control group here.
    return LimitsHit(max(found.memory, int(bool(state.get("OOMKilled")))), found.pids)


def counted(pid: int, proc: Path = Path("/proc"), root: Path = CONTROL_GROUPS) -> LimitsHit:
    """Read the counters of the control groups of a process of this machine."""
    counts = {"memory": 0, "pids": 0}
    for directory in _control_groups(pid, proc, root):
        for name, (limit, word) in _COUNTERS.items():
            counts[limit] = max(counts[limit], _counter(directory / name, word))
    return LimitsHit(counts["memory"], counts["pids"])


def _control_groups(pid: int, proc: Path, root: Path) -> Iterator[Path]:
    try:
        lines = (proc / str(pid) / "cgroup").read_text().splitlines() if pid else []
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        below = path.lstrip("/")
        if not controllers:
            yield from (root / below, root / "unified" / below)
        elif {"memory", "pids"} & set(controllers.split(",")):
            yield root / controllers / below


def _counter(file: Path, word: str) -> int:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.split()[:1] == [word]), 0)
