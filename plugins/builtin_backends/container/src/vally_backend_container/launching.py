"""The programs that run inside a container: what keeps it, what starts a process in it, and what ends one.

A launcher stands in front of every process. It sets the environment, whose variables arrive with a prefix so that they
are not taken for those of the engine's own client, and writes to a file what only it knows: the session of the process,
why it could not be started and how it ended. An engine's exit code tells a signal from an exit by no means.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vally import ProcessStartError

PREFIX = "VALLY_IN_"
"""Begins the names of variables on their way into a container."""
MAX_REPORT_BYTES = 4096

IDLE = "trap 'exit 0' TERM INT; while :; do sleep 86400 & wait $!; done"
"""The first process: it waits, and takes over the children of processes that ended."""

WAITING = r"""
use strict; use warnings;
my ($file, $names, @command) = @ARGV;
delete $ENV{PERL_BADLANG};
for my $name (split / /, $names) { $ENV{$name} = delete $ENV{"VALLY_IN_$name"} }
sub tell_host { open(my $out, '>>', $file) or exit 125; print $out "@_\n"; close $out }
setpgrp 0, 0;
sub others_run {
    opendir(my $all, '/proc') or return 0;
    for my $pid (grep { /^\d+$/ && $_ != $$ } readdir $all) {
        open(my $in, '<', "/proc/$pid/stat") or next;
        my ($state, $parent, $group, $session) = split ' ', (<$in> // '') =~ s/.*\) //sr;
        return 1 if defined $session && $state ne 'Z' && ($group == $$ || $session == $$);
    }
    return 0;
}
my @signals = qw(TERM INT HUP QUIT);
my $asked = 0;
pipe(my $reader, my $writer) or exit 125;
$SIG{$_} = sub { $asked = 1 } for @signals;
my $child = fork;
exit 125 unless defined $child;
if ($child == 0) {
    $SIG{$_} = 'DEFAULT' for @signals;
    close $reader;
    no warnings 'exec';
    exec { $command[0] } @command;
    syswrite $writer, $! + 0;
    kill 'KILL', $$;
}
close $writer;
my $problem = '';
sysread $reader, $problem, 16;
tell_host(length $problem ? "failed $problem" : "started $$");
close $_ for *STDOUT, *STDERR;
1 until waitpid($child, 0) == $child;
my $status = $?;
exit 127 if length $problem;
tell_host("ended $status");
# An engine that finds nobody to give input to may forget what the program wrote: take what the program did not.
vec(my $input = '', fileno(STDIN), 1) = 1;
while (!$asked && select(my $ready = $input, undef, undef, 0.25) > 0) { last unless sysread STDIN, my $unread, 65536 }
# What else was asked to end may still have something to say, and nobody would hear it after the end of this process.
while ($asked && others_run()) { select undef, undef, undef, 0.01 }
exit($status & 127 ? 128 + ($status & 127) : $status >> 8);
"""
"""For images with perl: it waits for the program, so that it can tell how that ended."""

REPLACED = r"""
file=$1 names=$2
shift 2
for name in $names; do
    eval "export $name=\"\$VALLY_IN_$name\""
    unset "VALLY_IN_$name"
done
case $1 in
*/*) [ -e "$1" ] || { echo "failed 2" >>"$file"; exit 127; }
     [ -x "$1" ] && [ ! -d "$1" ] || { echo "failed 13" >>"$file"; exit 126; } ;;
*) command -v -- "$1" >/dev/null 2>&1 || { echo "failed 2" >>"$file"; exit 127; } ;;
esac
echo "started $$" >>"$file"
exec "$@"
"""
"""For images without: the program takes its place, and an exit code above 128 passes for a signal."""

ENDING = r"""
name=$1 session=$2 passes=5
# At once for the group, as without a container: a shell must not see its child end before it is asked itself.
kill -s "$name" -- "-$session" 2>/dev/null
while [ $passes -gt 0 ]; do
    found=
    for file in /proc/[0-9]*/stat; do
        { read -r line <"$file"; } 2>/dev/null || continue
        pid=${file#/proc/}
        pid=${pid%/stat}
        set -- ${line##*) }
        [ "$4" = "$session" ] && [ "$3" != "$session" ] && [ "$1" != Z ] || continue
        kill -s "$name" "$pid" 2>/dev/null && found=1
    done
    [ "$name" = KILL ] && [ -n "$found" ] || break
    passes=$((passes - 1))
done
"""
"""Sends a signal to every process of a group, and of the session of the same number, by nothing but the shell."""


@dataclass(frozen=True)
class Report:
    """What a launcher wrote; None for what it did not write yet."""

    session: int | None = None
    problem: int | None = None
    status: int | None = None

    @property
    def told(self) -> bool:
        """Whether it is known that the program was started, or not."""
        return self.session is not None or self.problem is not None

    def error(self, program: str) -> ProcessStartError:
        """Why the program could not be started, worded as on this machine."""
        number = self.problem or errno.EIO
        return ProcessStartError.from_error(OSError(number, os.strerror(number)), program)


def read_report(path: Path) -> Report:
    """Read what a launcher wrote; agents may have put something else there, which is never followed or trusted."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            lines = file.read(MAX_REPORT_BYTES).decode("ascii", errors="replace").split("\n")[:-1]
    except OSError:
        return Report()
    found: dict[str, int] = {}
    for line in lines:
        word, _, number = line.partition(" ")
        if number.isdecimal() and len(number) < 10:
            found.setdefault(word, int(number))
    return Report(found.get("started"), found.get("failed"), found.get("ended"))


def returncode(report: Report, engine_code: int, *, exact: bool) -> int:
    """Return code as the subprocess module has it: minus the number of a signal. `exact`: the launcher waits."""
    if report.status is not None:
        number = report.status & 127
        return -number if _is_signal(number) else report.status >> 8
    if (not exact or engine_code == 128 + signal.SIGKILL) and _is_signal(engine_code - 128):
        return 128 - engine_code
    return engine_code


def _is_signal(number: int) -> bool:
    return any(number == known for known in signal.Signals)


def launched(argv: Sequence[str], report: Path, names: Sequence[str], perl: str | None) -> list[str]:
    """The command inside the container that starts `argv` with the variables `names`."""
    told = [str(report), " ".join(names)]
    if perl is not None:
        return [perl, "-e", WAITING, *told, *argv]
    return ["/bin/sh", "-c", REPLACED, "vally", *told, *argv]


def ending(name: str, session: int) -> list[str]:
    """The command inside the container that signals a session; `name` is `TERM` or `KILL`."""
    return ["/bin/sh", "-c", ENDING, "vally", name, str(session)]


def prefixed(env: Mapping[str, str]) -> dict[str, str]:
    """Variables as they travel. Names that no shell can set are left behind."""
    return {PREFIX + name: value for name, value in env.items() if name.isidentifier() and name.isascii()}
