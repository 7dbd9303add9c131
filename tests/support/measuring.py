"""Measuring whole processes, side by side with other tools where they are installed."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROUNDS = 3


@dataclass(frozen=True)
class Peer:
    """Another tool that evaluates models, found on the path or named by `VALLY_BENCH_<NAME>`."""

    name: str
    command: str

    def words(self) -> list[str]:
        """Words that start the tool; the test is skipped where it is not installed."""
        named = os.environ.get(f"VALLY_BENCH_{self.name.upper()}") or shutil.which(self.command)
        if not named:
            pytest.skip(f"{self.name} is not installed")
        return [named]


INSPECT = Peer("inspect", "inspect")
PROMPTFOO = Peer("promptfoo", "promptfoo")


def cpu_seconds(command: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> float:
    """User and system time of a command and its children: what else the machine does hardly counts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environ = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    environ |= {"VALLY_CACHE_DIR": str(cwd / "cache"), **(env or {})}
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def least(commands: Mapping[str, Sequence[str]], cwd: Path, env: Mapping[str, str] | None = None) -> dict[str, float]:
    """The least time of each command over some rounds, measured in turns, so that a busy moment hits all alike."""
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            seconds = cpu_seconds(command, cwd, env)
            best[name] = min(best.get(name, seconds), seconds)
    return best


def vally(*words: str) -> list[str]:
    """The program of this environment."""
    return [sys.executable, "-m", "vally", *words]
