"""The programs that run inside a container, outside of one."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from programs import until

from vally_backend_container.launching import (
    IDLE,
    Report,
    ending,
    launched,
    prefixed,
    read_report,
    returncode,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containers run Linux")
PERL = shutil.which("perl")
LAUNCHERS = [
    pytest.param(PERL, id="waiting", marks=pytest.mark.skipif(PERL is None, reason="perl is not installed")),
    pytest.param(None, id="replaced"),
]


class Launch:
    """A launcher in a session of its own, as engines start it."""

    def __init__(self, perl: str | None, directory: Path, argv: list[str], env: dict[str, str]) -> None:
        self.report = directory / "report"
        self._exact = perl is not None
        names = list(env)
        self.process = subprocess.Popen(
            launched(argv, self.report, names, perl),
            env={"PATH": os.environ["PATH"], "LANG": "xx_YY.UTF-8", "PERL_BADLANG": "0", **prefixed(env)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def finish(self, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
        out, err = self.process.communicate(stdin, timeout=60)
        code = self.process.returncode
        engine_code = 128 - code if code < 0 else code
        return returncode(read_report(self.report), engine_code, exact=self._exact), out, err


def launch(perl: str | None, directory: Path, *argv: str, **env: str) -> tuple[int, bytes, bytes]:
    return Launch(perl, directory, list(argv), env).finish()


@pytest.mark.parametrize("perl", LAUNCHERS)
@pytest.mark.parametrize(("line", "code"), [("exit 0", 0), ("exit 3", 3), ("exit 126", 126)])
def test_exit_codes_arrive(line: str, code: int, perl: str | None, tmp_path: Path) -> None:
    assert launch(perl, tmp_path, "sh", "-c", line) == (code, b"", b"")


@pytest.mark.parametrize("perl", LAUNCHERS)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGPIPE])
def test_signals_arrive(number: signal.Signals, perl: str | None, tmp_path: Path) -> None:
    assert launch(perl, tmp_path, "sh", "-c", f"ulimit -c 0; kill -{int(number)} $$") == (-number, b"", b"")


@pytest.mark.skipif(PERL is None, reason="perl is not installed")
def test_an_exit_like_that_of_a_signal_is_none_where_that_can_be_told(tmp_path: Path) -> None:
    assert launch(PERL, tmp_path, "sh", "-c", "exit 137")[0] == 137


def test_an_exit_like_that_of_a_signal_passes_for_one_elsewhere(tmp_path: Path) -> None:
    assert launch(None, tmp_path, "sh", "-c", "exit 137")[0] == -signal.SIGKILL


@pytest.mark.parametrize("perl", LAUNCHERS)
def test_streams_are_those_of_the_program(perl: str | None, tmp_path: Path) -> None:
    one = Launch(perl, tmp_path, ["sh", "-c", "cat; echo oops >&2"], {})
    assert one.finish(b"\0some\xff bytes\n") == (0, b"\0some\xff bytes\n", b"oops\n")


@pytest.mark.parametrize("perl", LAUNCHERS)
def test_variables_and_arguments_arrive_as_they_are(perl: str | None, tmp_path: Path) -> None:
    values = {"QUOTED": """it's "$HOME" `id` \\n $(id)""", "LINES": "one\n\ntwo\n", "EMPTY": ""}
    values["PATH"] = os.environ["PATH"]
    code = "import json, os, sys; print(json.dumps([dict(os.environ), sys.argv[1:]]))"
    _, out, err = launch(perl, tmp_path, sys.executable, "-c", code, "a b", "", "-x", "$HOME\n", **values)
    assert err == b""
    found = json.loads(out)
    assert found[1] == ["a b", "", "-x", "$HOME\n"]
    assert {name: found[0].get(name) for name in values} == values
    assert not [name for name in found[0] if name.startswith("VALLY_IN_")]


@pytest.mark.parametrize("perl", LAUNCHERS)
@pytest.mark.parametrize(
    ("program", "reason"),
    [("no-such-program", "ENOENT"), ("./no/such/program", "ENOENT"), ("/etc/passwd", "EACCES"), ("/etc", "EACCES")],
)
def test_a_program_that_cannot_be_started_is_told(program: str, reason: str, perl: str | None, tmp_path: Path) -> None:
    one = Launch(perl, tmp_path, [program], {})
    _, out, err = one.finish()
    error = read_report(one.report).error(program)
    assert (error.errno_name, out, err) == (reason, b"", b"")
    assert error.message.startswith(f"cannot start '{program}': ")


@pytest.mark.parametrize("perl", LAUNCHERS)
def test_a_program_without_its_interpreter_was_started_where_nobody_waits(perl: str | None, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    one = Launch(perl, tmp_path, [str(program)], {})
    assert one.finish()[0] == 127
    found = read_report(one.report)
    assert (found.session is None, found.problem) == ((False, None) if perl is None else (True, errno.ENOENT))


@pytest.mark.parametrize("perl", LAUNCHERS)
def test_a_session_is_asked_to_end_at_once(perl: str | None, tmp_path: Path) -> None:
    # The shell must not see its child end before it is asked itself. A child that still is the shell would ignore it.
    child = 'until [ "$(cat /proc/$!/comm)" = sleep ]; do :; done'
    script = f"trap 'echo asked; exit 0' TERM; sleep 600 & {child}; echo ready; wait; echo too late"
    one = Launch(perl, tmp_path, ["sh", "-c", script], {})
    assert one.process.stdout is not None
    assert one.process.stdout.readline() == b"ready\n"
    until(lambda: read_report(one.report).session == one.process.pid)
    subprocess.run(ending("TERM", one.process.pid), check=True)
    assert one.finish() == (0, b"asked\n", b"")


@pytest.mark.skipif(PERL is None, reason="perl is not installed")
def test_what_others_have_to_say_is_waited_for(tmp_path: Path) -> None:
    script = "(trap 'sleep 0.3; echo asked; exit 0' TERM; echo ready; while :; do sleep 0.1; done) & exec sleep 600"
    one = Launch(PERL, tmp_path, ["sh", "-c", script], {})
    assert one.process.stdout is not None
    assert one.process.stdout.readline() == b"ready\n"
    subprocess.run(ending("TERM", one.process.pid), check=True)
    one.process.wait(60)
    assert one.finish()[:2] == (-signal.SIGTERM, b"asked\n")


@pytest.mark.skipif(PERL is None, reason="perl is not installed")
def test_input_that_no_program_reads_finds_somebody(tmp_path: Path) -> None:
    made = Launch(PERL, tmp_path, ["sh", "-c", "head -c 1 >/dev/null; echo said; exit 3"], {})
    assert made.process.stdin is not None
    # More than a pipe holds, so that the program is gone before all of it could be written.
    made.process.stdin.write(b"x" * 2**20)
    assert made.finish() == (3, b"said\n", b"")


@pytest.mark.skipif(PERL is None, reason="perl is not installed")
@pytest.mark.parametrize("given", [b"", b"some"])
def test_input_that_stays_open_keeps_nothing_alive(given: bytes, tmp_path: Path) -> None:
    made = Launch(PERL, tmp_path, ["sh", "-c", "echo said; exit 3"], {})
    assert made.process.stdin is not None
    made.process.stdin.write(given)
    made.process.stdin.flush()
    assert made.process.wait(60) == 3
    assert made.finish() == (3, b"said\n", b"")


@pytest.mark.parametrize("perl", LAUNCHERS)
def test_what_left_the_group_is_ended_with_the_session(perl: str | None, tmp_path: Path) -> None:
    own_group = "import os, sys, time; os.setpgid(0, 0); print('ready', flush=True); time.sleep(600)"
    one = Launch(perl, tmp_path, ["sh", "-c", 'trap "" TERM; "$@" & wait', "sh", sys.executable, "-c", own_group], {})
    assert one.process.stdout is not None
    assert one.process.stdout.readline() == b"ready\n"
    subprocess.run(ending("KILL", one.process.pid), check=True)
    code, out, _ = one.finish()
    assert (code, out) == (-signal.SIGKILL, b"")


def test_the_first_process_ends_when_it_is_asked_to() -> None:
    command = ["/bin/sh", "-c", IDLE.replace("while", "echo ready; while", 1)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as one:
        assert one.stdout is not None
        assert one.stdout.readline() == b"ready\n"
        os.killpg(one.pid, signal.SIGTERM)
        assert one.wait(60) == 0
        # A container ends with its first process; here what it was about to start may have missed the signal.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(one.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", Report()),
        (b"started 7\n", Report(session=7)),
        (b"started 7\nended 256\n", Report(session=7, status=256)),
        (b"failed 2\n", Report(problem=2)),
        (b"started 7\nstarted 8\nrubbish\n\xff\xfe 3\n", Report(session=7)),
        (b"started -1\n", Report()),
        (b"started 99999999999999999999\n", Report()),
        (b"started 7", Report()),
    ],
)
def test_reports(text: bytes, expected: Report, tmp_path: Path) -> None:
    (tmp_path / "report").write_bytes(text)
    assert read_report(tmp_path / "report") == expected


def test_what_an_agent_put_in_the_place_of_a_report_harms_nobody(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("started 1\n")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    (tmp_path / "large").write_bytes(b"x" * 10_000_000)
    for name in ("link", "pipe", "directory", "large", "nothing"):
        assert read_report(tmp_path / name) == Report()
