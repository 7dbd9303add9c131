"""The command line that starts a program in a sandbox.

From outside to inside: a shell, `bwrap`, a launcher in Python, the program. A request to end (SIGTERM) goes to the
whole process group; all but the program ignore it, so that the program can end by itself as it would without a
sandbox. `bwrap` turns a signal that ended the program into an exit code; the launcher tells the signal's number on
descriptor 3, and the shell then ends by the same signal. Where the program has a way to its model, the launcher starts
the forwarder that leads there, in a process beside the program.

`--new-session` is not used: runners start everything in a session of its own, without a terminal, and another session
inside would keep requests to end from the program.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vally_backend_local import Forward, forwarder_source, forwarder_words

OUTSIDE = """
trap '' TERM
if [ -n "$1" ]; then echo $$ >"$1" || exit 125; fi
shift
exec 4>&1
number=$("$@" 3>&1 1>&4 4>&-)
code=$?
case $number in '' | *[!0-9]*) exit $code ;; esac
trap - TERM
ulimit -c 0
kill -"$number" $$
exit $code
"""

INSIDE = """
import os, resource, signal, sys
drop, memory, processes, forwarder, *rest = sys.argv[1:]
forwards, program = rest[:rest.index("--")], rest[rest.index("--") + 1:]
if drop:
    os.environ.pop(drop, None)
if forwarder:
    parts = {"__name__": "forwarder"}
    exec(forwarder, parts)
    # What the program asks before the forwarder runs waits in the listening sockets.
    listening = parts["listen"](forwards[1:])
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(4):
            os.dup2(nothing, descriptor)
        parts["serve"](forwards[0], listening)
    for made, _ in listening:
        made.close()
child = os.fork()
if child == 0:
    os.close(3)
    for name in ("SIGTERM", "SIGPIPE", "SIGXFSZ", "SIGINT"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        if processes:
            resource.setrlimit(resource.RLIMIT_NPROC, (int(processes), int(processes)))
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
        os.execvp(program[0], program)
    except OSError as error:
        print(f"{program[0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
for descriptor in (0, 1, 2):
    os.close(descriptor)
status = os.waitpid(child, 0)[1]
if os.WIFSIGNALED(status):
    os.write(3, str(os.WTERMSIG(status)).encode())
    os._exit(128 + os.WTERMSIG(status))
os._exit(os.WEXITSTATUS(status))
"""

_NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")


@dataclass(frozen=True)
class Limits:
    """`memory` in bytes of address space per process; `processes` by the limit of the user.

    `process_group` is the file of a control group that counts processes, for a user whom that limit does not bind.
    """

    memory: int | None = None
    processes: int | None = None
    process_group: Path | None = None


def sandboxed(
    argv: Sequence[str],
    *,
    bwrap: str,
    mounts: Sequence[str],
    cwd: Path,
    network: bool,
    limits: Limits,
    forwards: Sequence[Forward] = (),
    drop: str = "",
) -> list[str]:
    """Return the command; `drop` names a variable that the launcher's interpreter may have added.

    `forwards` are the ways out that there are beside the program, until it ends.
    """
    group = "" if limits.process_group is None else str(limits.process_group)
    outside = ["/bin/sh", "-c", OUTSIDE, "vally-sandbox", group]
    sandbox = [*isolated(bwrap, mounts, network=network), "--chdir", str(cwd), "--"]
    bounds = [str(value) if value else "" for value in (limits.memory, limits.processes)]
    forwarder = [forwarder_source("python"), *forwarder_words(forwards)] if forwards else [""]
    inside = [sys.executable, "-I", "-S", "-c", INSIDE, drop, *bounds, *forwarder, "--"]
    return [*outside, *sandbox, *inside, *argv]


def isolated(bwrap: str, mounts: Sequence[str], *, network: bool) -> list[str]:
    """The beginning of a command of `bwrap`: what every sandbox is made with."""
    alone = [] if network else ["--unshare-net"]
    return [bwrap, *_NAMESPACES, *alone, "--die-with-parent", "--cap-drop", "ALL", *mounts]
