"""The program of the guardian, run as a script by an isolated Python without site packages.

It reads one JSON object a line, remembers what is open, and at the end of its input ends the processes of open trials
and removes their directories.
"""

# Pathlib would be half of what this process keeps in memory.
# ruff: noqa: PTH100, PTH120, PTH123

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vally.processes.scan import Marks

GRACE_SECONDS = 0.5
REMOVE_TRIES = 3
COMMAND_SECONDS = 60.0


class Watch:
    """What the guardian knows of open trials."""

    def __init__(self) -> None:
        self._open: dict[str, dict[str, Any]] = {}

    def hear(self, message: dict[str, Any]) -> None:
        """Take one message over."""
        if "open" in message:
            self._open[message["open"]] = {**message, "sessions": {}, "commands": []}
        elif "mark" in message:
            self._open[message["mark"]]["pairs"].append(message["pair"])
        elif "session" in message:
            self._open[message["session"]]["sessions"][message["id"]] = message["by"]
        elif "command" in message:
            self._open[message["command"]]["commands"].append((message["argv"], message["env"]))
        elif "close" in message:
            self._open.pop(message["close"], None)

    def act(self) -> None:
        """End the processes of all open trials, run their commands, then remove their directories."""
        if not self._open:
            return
        from vally.processes.scan import end_processes, process_table

        end_processes(self._marks(), process_table(), grace=GRACE_SECONDS)
        run_commands([command for trial in self._open.values() for command in trial["commands"]])
        for trial in self._open.values():
            remove_directories(trial["remove"])

    def _marks(self) -> Marks:
        from vally.processes.scan import Marks

        trials = list(self._open.values())
        return Marks(
            pairs=frozenset(os.fsencode(pair) for trial in trials for pair in trial["pairs"]),
            dirs=tuple(os.fsencode(path) for trial in trials for path in trial["dirs"]),
            sessions={session: by for trial in trials for session, by in trial["sessions"].items()},
            since=min(trial["since"] for trial in trials),
        )


def run_commands(commands: Iterable[tuple[list[str], dict[str, str]]]) -> None:
    """Run commands side by side, each with a time limit; nobody is left who could hear what they say."""
    import subprocess
    import time

    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    started = []
    for argv, env in commands:
        try:
            started.append(subprocess.Popen(argv, env=env, **quiet))  # type: ignore[call-overload]
        except OSError:
            continue
    until = time.monotonic() + COMMAND_SECONDS
    for process in started:
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def remove_directories(paths: Iterable[str]) -> None:
    """Remove directory trees, mounts inside them detached first; what a mount shows is never removed."""
    import shutil
    import time

    for path in paths:
        for number in range(REMOVE_TRIES):
            for mount in mounts_in(path):
                detach(mount)
            if not mounts_in(path):
                shutil.rmtree(path, ignore_errors=True)
            if not os.path.lexists(path):
                break
            time.sleep(0.1 * (number + 1))


def mounts_in(path: str) -> list[str]:
    """Return the mount points at or under a directory, the innermost first (Linux; elsewhere none)."""
    try:
        with open("/proc/self/mounts", "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    points = [os.fsdecode(line.split(b" ")[1].decode("unicode_escape").encode("latin-1")) for line in lines]
    return sorted((point for point in points if point == path or point.startswith(path + "/")), reverse=True)


def detach(mount: str) -> None:
    """Unmount lazily: what still uses the mount keeps it, no path leads there any more."""
    import subprocess

    try:
        subprocess.run(["umount", "-l", mount], env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, check=False, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return


def main(site_packages: list[str]) -> None:
    """Listen until the other end of the pipe is closed, then act."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    import json

    sys.path.extend(site_packages)
    make_importable()
    watch = Watch()
    for line in sys.stdin.buffer:
        if line.endswith(b"\n"):  # the last may be cut short
            watch.hear(json.loads(line))
    watch.act()


def make_importable() -> None:
    """Let `vally.processes.scan` be imported without its packages' own initialisation, which needs third parties."""
    from types import ModuleType

    here = os.path.dirname(os.path.abspath(__file__))
    for name, path in (("vally", os.path.dirname(here)), ("vally.processes", here)):
        package = ModuleType(name)
        package.__path__ = [path]
        sys.modules[name] = package


if __name__ == "__main__":
    main(sys.argv[1:])
