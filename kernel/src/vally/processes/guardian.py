"""The guardian: a process of its own that ends the processes of open trials when vally itself dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vally.processes.scan import Marks

EXIT_SECONDS = 15.0


class Guardian:
    """One stand-alone Python process per vally process, started when the first trial opens.

    It is told what is open over a pipe, and acts at the end of that pipe, whatever ended it: `kill -9` included. To be
    used from one thread.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._open: dict[str, list[bytes]] = {}

    def open(self, trial_id: str, marks: Marks, removable_dirs: Iterable[str] = ()) -> None:
        """Watch over a trial; `removable_dirs` are removed with its processes should vally die."""
        self._open[trial_id] = []
        self._tell(
            trial_id,
            {
                "open": trial_id,
                "pairs": [os.fsdecode(pair) for pair in sorted(marks.pairs)],
                "dirs": [os.fsdecode(path) for path in marks.dirs],
                "remove": list(removable_dirs),
                "since": marks.since,
            },
        )

    def mark(self, trial_id: str, pair: bytes) -> None:
        """Add `NAME=value` to what the trial's processes are known by."""
        self._tell(trial_id, {"mark": trial_id, "pair": os.fsdecode(pair)})

    def session(self, trial_id: str, session: int, started_by: float) -> None:
        """Add a session, started before `started_by` of the process table's clock."""
        self._tell(trial_id, {"session": trial_id, "id": session, "by": started_by})

    def command(self, trial_id: str, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Add a command that ends what is of the trial outside of its processes; run after these have ended."""
        self._tell(trial_id, {"command": trial_id, "argv": list(argv), "env": dict(env)})

    def close(self, trial_id: str) -> None:
        """Forget a trial whose processes and directories are gone."""
        if trial_id in self._open:
            self._tell(trial_id, {"close": trial_id})
            del self._open[trial_id]

    def shutdown(self) -> None:
        """End the guardian; at once when every trial is closed, else after it ended what is open. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        _close_pipe(process)
        try:
            process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _tell(self, trial_id: str, message: Mapping[str, object]) -> None:
        line = json.dumps(message).encode() + b"\n"
        self._open[trial_id].append(line)
        if self._process is None or not _write(self._process, [line]):
            self._restart()

    def _restart(self) -> None:
        """Start a guardian, also in the place of one that died, and tell it everything that is open."""
        if self._process is not None:
            _close_pipe(self._process)
            self._process.wait()
        # Nothing of vally's environment or directory: a guardian must not carry the marks of an outer trial.
        self._process = subprocess.Popen(
            _command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=Path(sys.executable).anchor,
            env=None if sys.platform == "win32" else {},
            start_new_session=True,
        )
        _write(self._process, [line for lines in self._open.values() for line in lines])


def _command() -> list[str]:
    command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("watch.py"))]
    if sys.platform != "linux":
        import psutil

        command.append(str(Path(psutil.__file__).parent.parent))
    return command


def _write(process: subprocess.Popen[bytes], lines: Iterable[bytes]) -> bool:
    assert process.stdin is not None
    try:
        process.stdin.write(b"".join(lines))
        process.stdin.flush()
    except OSError:
        return False
    return True


def _close_pipe(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    try:
        process.stdin.close()
    except OSError:
        # What was still buffered for a guardian that has died.
        return
