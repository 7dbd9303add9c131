"""Finding and ending the processes of one trial, wherever they have gone.

Background processes leave their parent, their group and their session, so they are known by what they inherit: an
environment variable, or a working directory inside the trial. This module needs the standard library alone, because
the guardian runs it without site packages; psutil is used where there is no `/proc`.
"""

# A scan reads hundreds of small files, and pathlib would double its time.
# ruff: noqa: PTH115, PTH116, PTH123, PTH208

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

POLL_SECONDS = 0.02
KILL_SECONDS = 1.0
CLOCK_TOLERANCE = 0.011  # start times are counted in ticks of 10 ms
SIGKILL = getattr(signal, "SIGKILL", signal.SIGTERM)


class Entry(NamedTuple):
    """One living process; `started` is a reading of the table's clock, in seconds."""

    pid: int
    parent: int
    group: int
    session: int
    started: float


class Marks(NamedTuple):
    """How the processes of a trial are known.

    `pairs` are `NAME=value` of an environment, `dirs` real paths, `sessions` maps the id of a session or group to the
    time by which it was started; a process started before `since` is never one of the trial.
    """

    pairs: frozenset[bytes] = frozenset()
    dirs: tuple[bytes, ...] = ()
    sessions: Mapping[int, float] = {}
    since: float = 0.0


class ProcessTable(Protocol):
    """The living processes of this machine; what has gone meanwhile reads as empty."""

    def clock(self) -> float: ...

    def entries(self) -> Iterator[Entry]: ...

    def alive(self, entry: Entry) -> bool: ...

    def owned(self, pid: int) -> bool: ...

    def environ(self, pid: int) -> Collection[bytes]: ...

    def cwd(self, pid: int) -> bytes: ...


class ProcTable:
    """The table in `/proc` of Linux."""

    def __init__(self, root: str = "/proc") -> None:
        self._root = root
        self._ticks = os.sysconf("SC_CLK_TCK")
        self._user = os.geteuid()

    def clock(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def entries(self) -> Iterator[Entry]:
        for name in os.listdir(self._root):
            if name.isdecimal() and (entry := self._entry(int(name))):
                yield entry

    def alive(self, entry: Entry) -> bool:
        now = self._entry(entry.pid)
        return now is not None and now.started == entry.started

    def owned(self, pid: int) -> bool:
        try:
            return os.stat(f"{self._root}/{pid}").st_uid == self._user
        except OSError:
            return False

    def environ(self, pid: int) -> Collection[bytes]:
        return self._read(pid, "environ").split(b"\0")

    def cwd(self, pid: int) -> bytes:
        try:
            return os.readlink(f"{self._root}/{pid}/cwd".encode()).removesuffix(b" (deleted)")
        except OSError:
            return b""

    def _entry(self, pid: int) -> Entry | None:
        # The name in parentheses may itself hold spaces and parentheses.
        fields = self._read(pid, "stat").rpartition(b")")[2].split()
        if len(fields) < 20 or fields[0] in (b"Z", b"X"):
            return None
        return Entry(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]) / self._ticks)

    def _read(self, pid: int, name: str) -> bytes:
        try:
            with open(f"{self._root}/{pid}/{name}", "rb", buffering=0) as file:
                return file.read()
        except OSError:
            return b""


class PsutilTable:
    """The table as psutil sees it, for systems without `/proc`."""

    def __init__(self) -> None:
        import psutil

        self._psutil: Any = psutil
        self._user = psutil.Process().username()

    def clock(self) -> float:
        return time.time()

    def entries(self) -> Iterator[Entry]:
        for process in self._psutil.process_iter():
            entry = self._entry(process)
            if entry is not None:
                yield entry

    def alive(self, entry: Entry) -> bool:
        now = self._ask(lambda: self._entry(self._psutil.Process(entry.pid)), None)
        return now is not None and now.started == entry.started

    def owned(self, pid: int) -> bool:
        return bool(self._ask(lambda: self._psutil.Process(pid).username(), None) == self._user)

    def environ(self, pid: int) -> Collection[bytes]:
        pairs = self._ask(lambda: self._psutil.Process(pid).environ(), {})
        return {os.fsencode(f"{name}={value}") for name, value in pairs.items()}

    def cwd(self, pid: int) -> bytes:
        return os.fsencode(self._ask(lambda: self._psutil.Process(pid).cwd(), "") or "")

    def _entry(self, process: Any) -> Entry | None:
        def read() -> Entry | None:
            if process.status() in (self._psutil.STATUS_ZOMBIE, self._psutil.STATUS_DEAD):
                return None
            group, session = self._group_and_session(process)
            return Entry(process.pid, process.ppid(), group, session, process.create_time())

        entry: Entry | None = self._ask(read, None)
        return entry

    def _group_and_session(self, process: Any) -> tuple[int, int]:
        if sys.platform == "win32":
            # Windows has no sessions of this kind: a started process and its children are found by these numbers,
            # later generations by their environment. Not tested on Windows.
            return process.pid, process.ppid()
        try:
            return os.getpgid(process.pid), os.getsid(process.pid)
        except OSError:
            return 0, 0

    def _ask(self, question: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return question()
        except (self._psutil.Error, OSError):
            return otherwise


def process_table() -> ProcessTable:
    """Return the table of this machine."""
    return ProcTable() if sys.platform == "linux" else PsutilTable()


def find_processes(marks: Marks, table: ProcessTable) -> list[Entry]:
    """Return the living processes that carry one of the marks, this process and its ancestors never among them."""
    entries = {entry.pid: entry for entry in table.entries()}
    own = _ancestry(entries, os.getpid())
    sessions = _still_valid(marks.sessions, entries)
    earliest = marks.since - CLOCK_TOLERANCE
    return [
        entry
        for entry in entries.values()
        if entry.started >= earliest and entry.pid not in own and _is_marked(entry, marks, sessions, table)
    ]


def end_processes(marks: Marks, table: ProcessTable, *, grace: float, passes: int = 5) -> int:
    """Terminate what carries the marks, after `grace` seconds kill it; return how many processes were found.

    Looks again after each pass, because a process may have made others meanwhile, until nothing is found.
    """
    found: set[tuple[int, float]] = set()
    for number in range(passes):
        entries = find_processes(marks, table)
        if not entries:
            break
        found.update((entry.pid, entry.started) for entry in entries)
        gentle = number == 0 and grace > 0
        send_signal(entries, marks.sessions, signal.SIGTERM if gentle else SIGKILL)
        _wait_until_gone(entries, table, grace if gentle else KILL_SECONDS)
    return len(found)


def send_signal(entries: Sequence[Entry], groups: Collection[int], number: int) -> None:
    """Signal the processes; those in one of `groups` at once with their whole group, which no fork can outrun."""
    whole = {entry.group for entry in entries}.intersection(groups) if hasattr(os, "killpg") else set()
    for group in whole:
        _quietly(os.killpg, group, number)
    for entry in entries:
        if entry.group not in whole:
            _quietly(os.kill, entry.pid, number)


def _quietly(kill: Callable[[int, int], None], target: int, number: int) -> None:
    try:
        kill(target, number)
    except (ProcessLookupError, PermissionError):
        # Gone meanwhile, or not ours to end; the next pass sees which.
        return


def _wait_until_gone(entries: Sequence[Entry], table: ProcessTable, seconds: float) -> None:
    until = time.monotonic() + seconds
    left = list(entries)
    while left and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
        left = [entry for entry in left if table.alive(entry)]


def _ancestry(entries: Mapping[int, Entry], pid: int) -> set[int]:
    line: set[int] = set()
    while pid and pid not in line:
        line.add(pid)
        entry = entries.get(pid)
        pid = entry.parent if entry else 0
    return line


def _still_valid(sessions: Mapping[int, float], entries: Mapping[int, Entry]) -> set[int]:
    """Leave out ids that were given out again: their leader was started after ours."""
    return {
        session
        for session, started_by in sessions.items()
        if session not in entries or entries[session].started <= started_by + CLOCK_TOLERANCE
    }


def _is_marked(entry: Entry, marks: Marks, sessions: Collection[int], table: ProcessTable) -> bool:
    if entry.session in sessions or entry.group in sessions:
        return True
    if not (marks.pairs or marks.dirs) or not table.owned(entry.pid):
        return False
    if not marks.pairs.isdisjoint(table.environ(entry.pid)):
        return True
    return bool(marks.dirs) and _lies_in(table.cwd(entry.pid), marks.dirs)


def _lies_in(path: bytes, dirs: Sequence[bytes]) -> bool:
    separator = os.fsencode(os.sep)
    return any(path == top or path.startswith(top.rstrip(separator) + separator) for top in dirs)
