"""What a trial costs on a cluster of this machine beside one on `local`: the figures of `docs/guide/cluster.md`.

Run with `-s -m heavy` to see them. The agent does nothing, so all that is measured is overhead. Processor time and
memory hardly depend on what else the machine does; trials a second do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from programs import check_closed, finish, records_of, run_dir

pytest.importorskip("ray")
pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("ray")]
TRIALS = 500
MANY = 3000
RUNS = 500
"""Trials of each stimulus."""

WARM = 100
"""Trials after which all processes have loaded what they need."""

MOST_GROWTH = 16 * 2**20
LOOK_S = 0.2
ROLES = {"ray::Worker": "worker", "vally_backend_ray.bridge": "bridge"}
PROGRAM = """
import atexit, pathlib, runpy
from vally_backend_ray import link

sent, framed = [], link.framed

def counted(value):
    data = framed(value)
    sent.append(len(data))
    return data

link.framed = counted
atexit.register(lambda: pathlib.Path("sent").write_text(str(sum(sent))))
runpy.run_module("vally", run_name="__main__")
"""


@dataclass
class Usage:
    """Processor seconds of the processes of one kind so far, and resident bytes of the largest."""

    seconds: float = 0.0
    memory: int = 0


Look = tuple[int, dict[str, Usage]]
"""How many trials were recorded, and what the processes had used by then."""


@dataclass
class Figures:
    """What was seen of a run; `around_s` is the time before and after its trials."""

    trials: int
    duration_s: float = 0.0
    around_s: float = 0.0
    out_bytes: int = 0
    back_bytes: int = 0
    looks: list[Look] = field(default_factory=list)

    def milliseconds(self, role: str) -> float:
        """Processor time of a trial in the processes of one kind, start and end left out."""
        (few, before), (many, after) = self._warm[0], self._warm[-1]
        return (after[role].seconds - before[role].seconds) / (many - few) * 1000

    def memory(self, role: str) -> tuple[int, int]:
        """Bytes when all is loaded, and the most of all later looks."""
        seen = [usage[role].memory for _, usage in self._warm]
        return seen[0], max(seen)

    @property
    def _warm(self) -> list[Look]:
        return [look for look in self.looks if look[0] >= WARM and set(look[1]) == {"driver", *ROLES.values()}]


def measured(root: Path, backend: str, trials: int) -> Figures:
    """Run an eval of an agent that does nothing, and look at all processes of it meanwhile."""
    graders = [{"type": "output-contains", "config": {"substring": "hello"}}]
    stimuli = [{"name": f"s{number}", "prompt": "hello", "graders": graders} for number in range(trials // RUNS)]
    root.mkdir()
    spec = {"name": "e", "defaults": {"executor": "mock", "runs": RUNS}, "stimuli": stimuli}
    (root / "eval.yaml").write_text(json.dumps(spec))
    words = ["eval", "-e", "eval.yaml", "--backend", backend, "--workers", "8", "--output-dir", "out"]
    environ = {"PATH": os.environ["PATH"], "HOME": str(root), "VALLY_CACHE_DIR": str(root / "cache")}
    found = Figures(trials)
    began = time.monotonic()
    with (root / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words],
            cwd=root,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
    while process.poll() is None:
        found.looks.append((_recorded(root), _usage(process.pid)))
        time.sleep(LOOK_S)
    code, _, _ = finish(process)
    assert code == 0, (root / "said").read_text()
    check_closed(records := records_of(root), trials)
    assert all(record["gradeResult"]["passed"] for record in records[:-1])
    found.duration_s = records[-1]["durationMs"] / 1000
    found.around_s = time.monotonic() - began - found.duration_s
    found.out_bytes = int((root / "sent").read_text())
    found.back_bytes = (run_dir(root) / "results.jsonl").stat().st_size
    return found


def _recorded(root: Path) -> int:
    with suppress(OSError, ValueError):
        return (run_dir(root) / "results.jsonl").read_bytes().count(b"\n")
    return 0


def _usage(pid: int) -> dict[str, Usage]:
    found: dict[str, Usage] = {}
    with suppress(psutil.Error):
        driver = psutil.Process(pid)
        for process in (driver, *driver.children(recursive=True)):
            with suppress(psutil.Error):
                command = " ".join(process.cmdline())
                role = next((role for word, role in ROLES.items() if word in command), None)
                role = "driver" if process.pid == pid else role
                if role is not None:
                    usage, times = found.setdefault(role, Usage()), process.cpu_times()
                    usage.seconds += times.user + times.system
                    usage.memory = max(usage.memory, process.memory_info().rss)
    return found


def told(found: Figures) -> str:
    """The figures of a run on a cluster."""
    time_of = ", ".join(f"{role} {found.milliseconds(role):.1f} ms" for role in ("worker", "driver", "bridge"))
    memory_of = ", ".join(
        f"{role} {first / 2**20:.0f} to {most / 2**20:.0f} MiB"
        for role, (first, most) in ((role, found.memory(role)) for role in ("worker", "driver", "bridge"))
    )
    return (
        f"{found.trials} trials: {found.trials / found.duration_s:.0f} a second; processor time of one: {time_of}; "
        f"memory after {WARM} trials and at most: {memory_of}; {found.out_bytes / found.trials / 1024:.1f} KiB to the "
        f"bridge and {found.back_bytes / found.trials / 1024:.1f} KiB of records a trial; "
        f"start and end {found.around_s:.1f} s"
    )


def test_overhead_of_a_trial(tmp_path: Path) -> None:
    local = measured(tmp_path / "local", "local", TRIALS)
    cluster = measured(tmp_path / "ray", "ray", TRIALS)
    # What every process uses was seen, or the figures would say nothing.
    for role in ("driver", *ROLES.values()):
        assert cluster.milliseconds(role) > 0
    print(f"\nlocal: {TRIALS} trials, {TRIALS / local.duration_s:.0f} a second\nray: {told(cluster)}")


def test_memory_does_not_grow_with_trials(tmp_path: Path) -> None:
    cluster = measured(tmp_path / "ray", "ray", MANY)
    print(f"\nray: {told(cluster)}")
    for role in ("driver", *ROLES.values()):
        first, most = cluster.memory(role)
        assert most - first < MOST_GROWTH, f"{role}: from {first / 2**20:.0f} to {most / 2**20:.0f} MiB"
