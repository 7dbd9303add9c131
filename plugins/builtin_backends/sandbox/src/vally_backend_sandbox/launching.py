"""The command line that starts a program in a sandbox.

From outside to inside: a shell, `bwrap`, a launcher in Python, the program. A request to end (SIGTERM) goes to the
whole process group; all but the program ignore it, so that the program can end by itself as it would without a
sandbox. `bwrap` turns a signal that ended the program into an exit code; the launcher tells the signal's number on
descriptor 3, and the shell then ends by the same signal.

`--new-session` is not used: runners start everything in a session of its own, without a terminal, and another session
inside would keep requests to end from the program.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
drop, memory, processes = sys.argv[1:4]
if drop:
    os.environ.pop(drop, None)
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
        os.execvp(sys.argv[4], sys.argv[4:])
    except OSError as error:
        print(f"{sys.argv[4]}: {error.strerror}", file=sys.stderr, flush=True)
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
    argv: Sequence[str], *, bwrap: str, mounts: Sequence[str], cwd: Path, network: bool, limits: Limits, drop: str = ""
) -> list[str]:
    """Return the command; `drop` names a variable that the launcher's interpreter may have added."""
    group = "" if limits.process_group is None else str(limits.process_group)
    outside = ["/bin/sh", "-c", OUTSIDE, "vally-sandbox", group]
    sandbox = [*isolated(bwrap, mounts, network=network), "--chdir", str(cwd), "--"]
    bounds = [str(value) if value else "" for value in (limits.memory, limits.processes)]
    inside = [sys.executable, "-I", "-S", "-c", INSIDE, drop, *bounds]
    return [*outside, *sandbox, *inside, *argv]


def isolated(bwrap: str, mounts: Sequence[str], *, network: bool) -> list[str]:
    """The beginning of a command of `bwrap`: what every sandbox is made with."""
    alone = [] if network else ["--unshare-net"]
    return [bwrap, *_NAMESPACES, *alone, "--die-with-parent", "--cap-drop", "ALL", *mounts]
