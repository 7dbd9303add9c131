"""The display on a terminal: there while trials run, never within a card, gone at the end."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pyte
import pytest

from vally import GraderResult
from vally.testing import ScriptedRun, trial_result
from vally_reporter_console.reporter import ConsoleReporter

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
ROWS, COLUMNS = 120, 100
TOTALS = re.compile(r"^  trials \d+/\d+ · ")


class Terminal:
    """A pseudo terminal whose screen is kept, with every state in which it was read."""

    def __init__(self, columns: int = COLUMNS) -> None:
        import fcntl
        import termios

        self.reader, self.writer = os.openpty()
        fcntl.ioctl(self.writer, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        self.screen = pyte.Screen(columns, ROWS)
        self._stream = pyte.ByteStream(self.screen)
        self.bytes = b""
        self.states: list[list[str]] = []

    def read(self, seconds: float = 0.0) -> bool:
        """Take what was written; returns False at the end of it."""
        if not select.select([self.reader], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.reader, 65_536)
        except OSError:
            return False
        self.bytes += data
        self._stream.feed(data)
        self.states.append(self.lines)
        return bool(data)

    @property
    def lines(self) -> list[str]:
        """The lines of the screen down to the last one that is not empty."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip().split("\n")

    def close(self) -> None:
        os.close(self.writer)
        os.close(self.reader)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


def write_eval(root: Path, delays: dict[str, int]) -> None:
    for name, delay in delays.items():
        (root / "fixtures").mkdir(exist_ok=True)
        (root / "fixtures" / f"{name}.json").write_text(json.dumps({"output": "hi", "delayMs": delay}))
    grader = {"type": "output-contains", "config": {"substring": "hi"}}
    spec = {
        "name": "shown",
        "defaults": {"executor": {"name": "mock", "config": {"fixtureDir": "fixtures"}}, "model": "gpt-x"},
        "stimuli": [{"name": name, "prompt": "p", "graders": [grader]} for name in delays],
    }
    (root / "eval.yaml").write_text(json.dumps(spec))


def start(root: Path, terminal: Terminal, *words: str, **env: str) -> subprocess.Popen[bytes]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(root), "VALLY_CACHE_DIR": str(root / "cache")}
    return subprocess.Popen(
        [sys.executable, "-m", "vally", "eval", "-e", "eval.yaml", "--output-dir", "out", *words],
        cwd=root,
        env={**environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", **env},
        stdin=subprocess.DEVNULL,
        stdout=terminal.writer,
        stderr=terminal.writer,
    )


def watch(process: subprocess.Popen[bytes], terminal: Terminal, act: Callable[[list[str]], None] | None = None) -> int:
    """Read the terminal until the program ended; `act` sees each state of the screen."""
    end = time.monotonic() + 60
    try:
        while process.poll() is None:
            assert time.monotonic() < end, terminal.lines
            terminal.read(0.05)
            if act is not None and terminal.states:
                act(terminal.lines)
    finally:
        process.kill()
        process.wait()
    # What was written last may take a moment through the terminal.
    while select.select([terminal.reader], [], [], 0.2)[0] and terminal.read():
        pass
    return process.returncode


def test_the_display_of_a_run(tmp_path: Path, terminal: Terminal) -> None:
    write_eval(tmp_path, {"quick": 0, "short": 700, "long": 1400})
    assert watch(start(tmp_path, terminal), terminal) == 0
    text = terminal.bytes.decode()
    assert re.search(r"  [⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] shown / long \(gpt-x\) {3}running    0m0\ds\r\n", text)
    assert re.search(r"  trials 1/3 · 1 pass · 0 fail · 0 errors · 0:0\d elapsed · ~0:0\d left · 0 tokens\r", text)
    for lines in terminal.states:
        if any(TOTALS.match(line) for line in lines):
            assert TOTALS.match(lines[-1])
    final = terminal.lines
    assert [line for line in final if line.startswith("━━━")] == ["━━━ quick ━━━", "━━━ short ━━━", "━━━ long ━━━"]
    assert not [line for line in final if TOTALS.match(line) or re.match("  [⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] ", line)]
    assert final[-1].startswith("Output directory: out/")
    for number, line in enumerate(final):
        if line.startswith("━━━"):
            assert final[number + 1].startswith("✔ PASS  1/1 trials passed · score 1.00 · shown · gpt-x")
            assert final[number + 2 : number + 5] == ["", "Metrics", "─" * 13]
            assert final[number + 11 : number + 13] == ["Graders (1/1)", "─" * 41]
            assert final[number + 13 : number + 16] == [
                "  ✔ output-contains hi  'hi' found in output",
                "",
                "All graders passed.",
            ]


def test_the_cursor_is_never_hidden(tmp_path: Path, terminal: Terminal) -> None:
    write_eval(tmp_path, {"s": 600})
    assert watch(start(tmp_path, terminal), terminal) == 0
    assert b"  trials 0/1 " in terminal.bytes
    assert b"\x1b[?25" not in terminal.bytes


def test_an_interrupted_run_leaves_a_clean_screen(tmp_path: Path, terminal: Terminal) -> None:
    write_eval(tmp_path, {"s": 60_000, "t": 60_000})
    process, sent = start(tmp_path, terminal), []

    def interrupt(lines: list[str]) -> None:
        if not sent and sum(" running " in line for line in lines) == 2:
            sent.append(True)
            process.send_signal(signal.SIGINT)

    assert watch(process, terminal, interrupt) == 130
    final = terminal.lines
    assert "stopping: waiting for 2 running trials (Ctrl-C again to abort)" in final
    assert not [line for line in final if TOTALS.match(line)]
    assert any(line.startswith("PARTIAL (interrupted)  0 of 1 evals passed · 2 trials") for line in final)


@pytest.mark.parametrize(
    ("env", "words", "escapes"),
    [
        ({"NO_COLOR": "1"}, (), False),
        ({"CI": "true"}, (), True),
        ({"TERM": "dumb"}, (), False),
        ({}, ("--progress", "plain"), True),
        ({}, ("--progress", "none", "--color", "never"), False),
        ({}, ("--verbose", "--color", "never"), False),
        ({"TERM": "dumb"}, ("--progress", "live"), False),
    ],
    ids=["no-color", "ci", "dumb", "plain", "none", "verbose", "live-on-dumb"],
)
def test_where_no_display_is_used(
    tmp_path: Path, terminal: Terminal, env: dict[str, str], words: tuple[str, ...], escapes: bool
) -> None:
    write_eval(tmp_path, {"s": 300})
    assert watch(start(tmp_path, terminal, *words, **env), terminal) == 0
    assert (b"\x1b" in terminal.bytes) == escapes
    assert not re.search(rb"\x1b\[[0-9;]*[^m0-9;]", terminal.bytes)
    plain = "none" not in words
    assert any(line.startswith("[1/1] ✔ shown / s (gpt-x)") for line in terminal.lines) == plain


def told(
    directory: Path,
    terminal: Terminal,
    names: list[str],
    act: Callable[[str, int], None],
    *,
    after: Sequence[threading.Thread] = (),
    **options: Any,
) -> str:
    """Tell a reporter on the terminal of a run; `act` sees the name of each event before it. Returns its stdout.

    The terminal stays until the threads in `after` ended.
    """
    results = [trial_result(name, GraderResult.verdict(True, "as wanted", name="g")) for name in names]
    out = io.StringIO()
    reporter = ConsoleReporter()
    with os.fdopen(os.dup(terminal.writer), "w", encoding="utf-8") as stderr, contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(stderr))
        for number, (method, event) in enumerate(ScriptedRun(directory, results, progress="live", **options).events()):
            act(method, number)
            getattr(reporter, method, lambda _: None)(event)
        for thread in after:
            while thread.is_alive():
                terminal.read(0.05)
    return out.getvalue()


def wait_until(terminal: Terminal, holds: Callable[[list[str]], bool]) -> None:
    end = time.monotonic() + 30
    while not holds(terminal.lines):
        assert time.monotonic() < end, terminal.lines
        terminal.read(0.05)


def wait_for(terminal: Terminal, text: str) -> None:
    wait_until(terminal, lambda lines: any(text in line for line in lines))


def is_totals(line: str) -> bool:
    """Whether a line is the last one of the display, whole or cut at its end."""
    return TOTALS.match(line) is not None and line.endswith((" tokens", "…"))


def echo_in_pieces(text: str) -> None:
    for piece in (text[:5], text[5:], "\n"):
        sys.stderr.write(piece)
        sys.stderr.flush()


@pytest.mark.parametrize(
    "echo",
    [lambda text: click.echo(text, err=True), lambda text: print(text, file=sys.stderr), echo_in_pieces],
    ids=["click", "print", "pieces"],
)
def test_what_others_print_appears_above_the_display(
    tmp_path: Path, terminal: Terminal, echo: Callable[[str], None]
) -> None:
    def act(method: str, _: int) -> None:
        if method == "on_trial_result":
            wait_for(terminal, "trials 0/1")
            echo("warning: something is odd")
            wait_until(terminal, lambda lines: lines[0] == "warning: something is odd" and is_totals(lines[-1]))

    out = told(tmp_path, terminal, ["s"], act)
    wait_until(terminal, lambda lines: lines == ["warning: something is odd"])
    assert out.startswith("━━━ s ━━━\n")


def test_threads_that_print_while_the_display_comes_and_goes(tmp_path: Path, terminal: Terminal) -> None:
    expected = {f"thread {number} line {line}" for number in range(4) for line in range(20)}

    def chatter(number: int) -> None:
        for line in range(20):
            sys.stderr.write(f"thread {number} line {line}\n")

    threads = [threading.Thread(target=chatter, args=[number]) for number in range(4)]

    def act(method: str, number: int) -> None:
        if number == 2:
            for thread in threads:
                thread.start()
        terminal.read()

    told(tmp_path, terminal, [f"s{number}" for number in range(20)], act, after=threads)
    wait_until(terminal, lambda lines: set(lines) == expected)
    assert len(terminal.lines) == len(expected)


LOGS = """
import logging

from vally import ReporterSpec


class Logs:
    def on_trial_phase(self, event):
        logging.getLogger("vally.logs").warning("phase %s", event.phase)


RECORD = ReporterSpec(name="logs", summary="logs phases", factory=Logs)
"""


def test_the_diagnostic_log_appears_above_the_display(tmp_path: Path, terminal: Terminal) -> None:
    write_eval(tmp_path, {"s": 700})
    (tmp_path / "logs.py").write_text(LOGS)
    assert watch(start(tmp_path, terminal, "--reporter-plugin", "./logs.py"), terminal) == 0
    assert b"  trials 0/1 " in terminal.bytes
    logged = [line for line in terminal.lines if "vally.logs" in line]
    phases = ("preparing", "running", "capturing", "grading", "cleanup")
    assert logged == [f"WARNING vally.logs: phase {phase}" for phase in phases]


def test_at_most_ten_trials_are_listed(tmp_path: Path, terminal: Terminal) -> None:
    names = [f"s{number}" for number in range(13)]
    results = [trial_result(name, GraderResult.verdict(True, "", name="g")) for name in names]
    events = list(ScriptedRun(tmp_path, results, progress="live").events())
    reporter = ConsoleReporter()
    with (
        os.fdopen(os.dup(terminal.writer), "w", encoding="utf-8") as stderr,
        contextlib.redirect_stderr(stderr),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        for method, event in events:
            if method in ("on_run_start", "on_trial_start"):
                getattr(reporter, method)(event)
        wait_for(terminal, "+3 more")
        listed = [line for line in terminal.lines if "scripted / s" in line]
        reporter.on_run_complete(events[-1][1])
    assert [line.split()[3] for line in listed] == names[:10]
    wait_until(terminal, lambda lines: lines == [""])


def test_lines_wider_than_the_terminal_are_cut(tmp_path: Path) -> None:
    terminal = Terminal(columns=40)
    seen: list[list[str]] = []

    def act(method: str, _: int) -> None:
        if method == "on_trial_result":
            wait_until(terminal, lambda lines: "漢字" in lines[0] and is_totals(lines[-1]))
            seen.append(terminal.lines)

    told(tmp_path, terminal, ["漢字" * 40], act, environ={"COLUMNS": "200"})
    (lines,) = seen
    assert len(lines) == 2
    assert all(line.endswith("…") for line in lines)
    wait_until(terminal, lambda lines: lines == [""])
    terminal.close()
