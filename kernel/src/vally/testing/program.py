"""The program, run inside the test process."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "TEMP", "TMP", "SystemRoot", "ComSpec")
_DIRECTORY = re.compile(r"^Output directory: (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CliResult:
    """What one invocation of the program did; `run_dir` is None when no run directory was made."""

    exit_code: int
    stdout: str
    stderr: str
    run_dir: Path | None

    @property
    def records(self) -> list[dict[str, Any]]:
        """The lines of the run's `results.jsonl`; empty without a run."""
        if self.run_dir is None:
            return []
        # Lines end at LF alone: texts may hold other characters that end lines elsewhere.
        lines = (self.run_dir / "results.jsonl").read_bytes().splitlines()
        return [json.loads(line) for line in lines]


def run_cli(
    args: Sequence[str | Path],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    input: str | None = None,
    plugins: Sequence[object] = (),
) -> CliResult:
    """Run `vally <args>` in this process, as if started in `cwd`.

    Of the process's environment only what every program needs is passed on; `env` is added to it. `input` is standard
    input. `plugins` are records or modules that join the installed plugins. Streams are no terminals. Current
    directory, streams, `sys.path`, log handlers and modules of plugins loaded from files are restored afterwards.
    """
    stdout, stderr = _Captured(), _Captured()
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vally-test-")))
        environ = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        environ |= {"VALLY_CACHE_DIR": str(scratch / "cache"), **(env or {})}
        stack.enter_context(_preserved(cwd))
        stack.enter_context(_stdin(input or ""))
        from vally.cli.program import run

        code = run(
            [str(word) for word in args],
            environ=environ,
            cwd=cwd.absolute(),
            stdout=stdout,
            stderr=stderr,
            host_objects=tuple(plugins),
        )
        out, err = stdout.text(), stderr.text()
    return CliResult(code, out, err, _run_directory(f"{out}\n{err}", cwd))


class _Captured(io.TextIOWrapper):
    """A stream that behaves like a pipe, with the bytes it got."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="backslashreplace", newline="", write_through=True)

    def text(self) -> str:
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode("utf-8")


@contextlib.contextmanager
def _stdin(text: str) -> Iterator[None]:
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
    try:
        yield
    finally:
        sys.stdin = before


@contextlib.contextmanager
def _preserved(cwd: Path) -> Iterator[None]:
    modules, path = set(sys.modules), list(sys.path)
    logger = logging.getLogger("vally")
    state = (list(logger.handlers), logger.level, logger.propagate)
    try:
        with contextlib.chdir(cwd):
            yield
    finally:
        roots = [cwd.resolve(), *(Path(entry) for entry in set(sys.path) - set(path) if entry)]
        sys.path[:] = path
        logger.handlers[:], logger.propagate = state[0], state[2]
        logger.setLevel(state[1])
        for name in set(sys.modules) - modules:
            if _loaded_for_this_run(sys.modules[name], roots):
                del sys.modules[name]


def _loaded_for_this_run(module: Any, roots: Sequence[Path]) -> bool:
    # What lies below the test's directory, in an import root of a plugin, or was loaded as a single file, would be
    # stale in the next test.
    file = getattr(module, "__file__", None)
    name = str(getattr(module, "__name__", ""))
    return name.startswith("vally_file_") or bool(file and any(Path(file).is_relative_to(root) for root in roots))


def _run_directory(text: str, cwd: Path) -> Path | None:
    # Paths are shown relative to the project root, which may lie above the current directory.
    named = _DIRECTORY.findall(text)
    if not named:
        return None
    bases = (cwd.absolute(), *cwd.absolute().parents)
    return next((base / named[-1] for base in bases if (base / named[-1]).is_dir()), None)
