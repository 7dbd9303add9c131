"""Running one git command: an argument list, an explicit environment, a time limit, one line of reason on failure."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from vally import VallyError

CHUNK_BYTES = 1 << 20
REASON_CHARACTERS = 500


class SnapshotError(VallyError):
    """A snapshot, diff or patch could not be made; the message is one line saying why."""


class GitCommandError(SnapshotError):
    """A git command ended with an error."""


@dataclass(frozen=True)
class Output:
    """What one command wrote, both streams as bytes."""

    stdout: bytes
    stderr: bytes


@dataclass(frozen=True)
class Limits:
    """Seconds that one command may take, and seconds after which it is slow enough to look for an obstacle."""

    timeout: float = 300.0
    patience: float = 2.0


class GitProcess:
    """Runs git commands one after another and can be cancelled from another thread.

    `environment` is all that a command sees besides a PATH that finds git itself; `scratch` is an existing directory
    for the standard input and error of a command. A command that runs longer than `limits.patience` is asked about
    now and then: when `obstacle` returns a reason, the command is ended with it.
    """

    def __init__(
        self,
        git: str,
        environment: Mapping[str, str],
        scratch: Path,
        limits: Limits,
        obstacle: Callable[[], str | None],
    ) -> None:
        self._git = git
        self._environment = dict(environment)
        self._scratch = scratch
        self._limits = limits
        self._obstacle = obstacle
        self._lock = threading.Lock()
        self._running: subprocess.Popen[bytes] | None = None
        self._cancelled = False

    def run(
        self, args: Sequence[str], *, cwd: Path, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> Output:
        """Run one command and keep what it wrote. Raises SnapshotError."""
        chunks: list[bytes] = []
        stderr = self.stream(args, chunks.append, cwd=cwd, stdin=stdin, env=env)
        return Output(b"".join(chunks), stderr)

    def stream(
        self,
        args: Sequence[str],
        sink: Callable[[bytes], object],
        *,
        cwd: Path,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
    ) -> bytes:
        """Run one command, hand its standard output to `sink` in pieces and return its standard error."""
        with self._temporary(stdin) as source, self._temporary() as errors:
            with self._started(args, cwd, source, errors, env) as process:
                problem = self._pump(process, sink)
            errors.seek(0)
            stderr = errors.read()
        name = _command_name(args)
        if self._cancelled:
            raise SnapshotError("the snapshot was cancelled")
        if problem is not None:
            raise SnapshotError(f"git {name} {problem}")
        if process.returncode != 0:
            raise GitCommandError(f"git {name} failed: {_reason(stderr, process.returncode)}")
        return stderr

    def cancel(self) -> None:
        """Kill the running command, if any, and refuse all later ones."""
        with self._lock:
            self._cancelled = True
            if self._running is not None:
                _kill_group(self._running)

    def _pump(self, process: subprocess.Popen[bytes], sink: Callable[[bytes], object]) -> str | None:
        """Read until the command ends; return why it was ended early, if it was."""
        ended = threading.Event()
        problems: list[str] = []
        watch = threading.Thread(target=self._watch, args=(process, ended, problems), daemon=True)
        watch.start()
        try:
            assert process.stdout is not None
            while chunk := process.stdout.read(CHUNK_BYTES):
                sink(chunk)
            process.wait()
        finally:
            ended.set()
            watch.join()
        return problems[0] if problems else None

    def _watch(self, process: subprocess.Popen[bytes], ended: threading.Event, problems: list[str]) -> None:
        deadline = time.monotonic() + self._limits.timeout
        pause = self._limits.patience
        while not ended.wait(max(0.0, min(pause, deadline - time.monotonic()))):
            problem = self._obstacle()
            if problem is None and time.monotonic() >= deadline:
                problem = f"took more than {self._limits.timeout:g} s"
            if problem is not None:
                problems.append(problem)
                _kill_group(process)
                return
            pause *= 4

    @contextlib.contextmanager
    def _started(
        self,
        args: Sequence[str],
        cwd: Path,
        source: IO[bytes],
        errors: IO[bytes],
        env: Mapping[str, str] | None,
    ) -> Iterator[subprocess.Popen[bytes]]:
        program = shutil.which(self._git)
        if program is None:
            raise SnapshotError("git not found")
        path = os.pathsep.join([str(Path(program).parent), os.defpath])
        with self._lock:
            if self._cancelled:
                raise SnapshotError("the snapshot was cancelled")
            try:
                process = subprocess.Popen(
                    [program, *args],
                    cwd=cwd,
                    env={**self._environment, "PATH": path, **(env or {})},
                    stdin=source,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                )
            except OSError as error:
                raise SnapshotError(_start_failure(cwd, error)) from error
            self._running = process
        try:
            yield process
        finally:
            self._finish(process)

    def _finish(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._running = None
            if process.poll() is None:
                _kill_group(process)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()

    @contextlib.contextmanager
    def _temporary(self, content: bytes = b"") -> Iterator[IO[bytes]]:
        with contextlib.ExitStack() as stack:
            try:
                stream = stack.enter_context(tempfile.TemporaryFile(dir=self._scratch))
                stream.write(content)
                stream.seek(0)
            except OSError as error:
                raise SnapshotError(f"cannot write to {self._scratch}: {error.strerror}") from error
            yield stream


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _start_failure(cwd: Path, error: OSError) -> str:
    if not cwd.is_dir():
        return "the workspace directory no longer exists"
    return f"git cannot be started: {error.strerror or error}"


def _command_name(args: Sequence[str]) -> str:
    skip = False
    for arg in args:
        if skip or arg.startswith("-"):
            skip = arg == "-c" and not skip
            continue
        return arg
    return ""


def _reason(stderr: bytes, returncode: int) -> str:
    """The first error line of git, which names the cause; the later ones only repeat what it led to."""
    lines = [line.strip() for line in stderr.decode("utf-8", errors="replace").splitlines() if line.strip()]
    for line in lines:
        for prefix in ("error: ", "fatal: "):
            if line.startswith(prefix):
                return line.removeprefix(prefix)[:REASON_CHARACTERS]
    return lines[0][:REASON_CHARACTERS] if lines else f"exit code {returncode}"
