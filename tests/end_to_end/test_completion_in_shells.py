"""The completion scripts in the shells themselves, typed into terminals; a shell that is not installed is left out."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vally.testing import ProjectBuilder

# Completing with Python behind it takes a moment on a busy machine.
PATIENCE_S = 60
START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "bind 'set enable-bracketed-paste off'; . {script}"),
    "zsh": (["zsh", "-f", "-i"], "unset zle_bracketed_paste; autoload -Uz compinit && compinit -u -D; . {script}"),
    "fish": (["fish", "--no-config", "-i"], "source {script}"),
}
# A shell wants the terminal to be its own.
TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
)
SHELLS = [name for name in START if shutil.which(name)]


class Terminal:
    """A shell on a pseudo-terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def wait_for(self, text: str) -> None:
        """Read until the text was shown after what was seen before."""
        start, end = len(self.seen), time.monotonic() + PATIENCE_S
        while text not in self.seen[start:]:
            assert time.monotonic() < end, f"{text!r} did not appear: {self.seen[-2000:]!r}"
            if select.select([self._descriptor], [], [], 0.5)[0]:
                self.seen += os.read(self._descriptor, 65536).decode(errors="replace")


@contextmanager
def terminal(argv: list[str], cwd: Path, env: dict[str, str]) -> Iterator[Terminal]:
    controller, device = pty.openpty()
    launch = [sys.executable, "-S", "-c", TAKE_TERMINAL, *argv]
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), device)
    process = subprocess.Popen(launch, cwd=cwd, env=env, start_new_session=True, **streams)
    os.close(device)
    try:
        yield Terminal(controller)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(controller)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project, and a `vally` on the path that is this checkout's."""
    root = tmp_path_factory.mktemp("completion")
    made = ProjectBuilder(root / "project")
    made.project(suites={"smoke": {"filter": {"area": "net"}}})
    stimuli = [{"name": "my first: one", "tags": {"prio": "p0"}}, {"name": "it's second"}]
    made.eval("one", stimuli)
    (root / "bin").mkdir()
    program = root / "bin" / "vally"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m vally "$@"\n')
    program.chmod(0o755)
    for shell in START:
        done = subprocess.run([program, "completion", shell], capture_output=True, text=True, check=True, timeout=60)
        (root / f"script.{shell}").write_text(done.stdout)
    return root


def completed(shell: str, place: Path, typed: str) -> str:
    """What the words of a line are after TAB was pressed behind it."""
    argv, start = START[shell]
    path = f"{place / 'bin'}{os.pathsep}/usr/local/bin{os.pathsep}/usr/bin{os.pathsep}/bin"
    env = {"PATH": path, "HOME": str(place), "TERM": "dumb", "LANG": "C.UTF-8"}
    with terminal(argv, place / "project", env) as line:
        line.type(f"{start.format(script=place / f'script.{shell}')}; echo rea''dy\n")
        line.wait_for("ready")
        # Behind the completion comes a word that ends what is echoed, so that it is known when all was shown.
        line.type(f"{typed}\t")
        line.type("\x01printf '<%s>' \x05 end; echo don''e\n")
        line.wait_for("<end>done")
    words = line.seen.rpartition("<end>done")[0].replace("\r", "").replace("\n", "")
    return words[words.rindex("<vally>") :]


CASES = [
    ("vally pl", "<vally><plugins>"),
    ("vally eval --suite sm", "<vally><eval><--suite><smoke>"),
    ("vally eval --output=jsonl --suite=sm", "<vally><eval><--output=jsonl><--suite=smoke>"),
    ("vally eval --stimulus my", "<vally><eval><--stimulus><my first: one>"),
    ('vally eval --stimulus "my f', "<vally><eval><--stimulus><my first: one>"),
    ("vally eval --stimulus it", "<vally><eval><--stimulus><it's second>"),
    ("vally eval --tag prio=p", "<vally><eval><--tag><prio=p0>"),
    ("vally eval -e evals/one/ev", "<vally><eval><-e><evals/one/eval.yaml>"),
    ("vally eval --eval-spec=evals/one/ev", "<vally><eval><--eval-spec=evals/one/eval.yaml>"),
]


def test_bash_is_always_tried() -> None:
    assert "bash" in SHELLS


@pytest.mark.parametrize(("typed", "expected"), CASES)
@pytest.mark.parametrize("shell", SHELLS)
def test_a_word_is_completed(shell: str, place: Path, typed: str, expected: str) -> None:
    assert completed(shell, place, typed) == expected


@pytest.mark.parametrize("shell", SHELLS)
def test_more_can_be_typed_behind_a_key(shell: str, place: Path) -> None:
    assert completed(shell, place, "vally eval --tag pr\tp0") == "<vally><eval><--tag><prio=p0>"


@pytest.mark.parametrize("shell", SHELLS)
def test_nothing_is_printed_when_completion_fails(shell: str, place: Path) -> None:
    broken = place / "broken"
    broken.mkdir(exist_ok=True)
    (broken / ".vally.yaml").write_text("suites: [\n")
    assert completed(shell, place, "vally eval --config ../broken/.vally.yaml --suite x") == (
        "<vally><eval><--config><../broken/.vally.yaml><--suite><x>"
    )
