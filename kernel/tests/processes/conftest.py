"""A trial for each test, and the proof that nothing of it is left."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from vally.processes import LocalProcessRunner, find_marked

ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def trial_id() -> str:
    return str(uuid.uuid4())


@pytest.fixture(autouse=True)
def nothing_left(trial_id: str, tmp_path: Path) -> Iterator[None]:
    """Fail when the test leaves a child, or a process known by the trial's id or directory."""
    before = set(psutil.Process().children(recursive=True))
    yield
    until = time.monotonic() + 5
    while (left := _left(trial_id, tmp_path, before)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not left


def _left(trial_id: str, tmp_path: Path, before: set[psutil.Process]) -> list[object]:
    children = [child for child in set(psutil.Process().children(recursive=True)) - before if child.is_running()]
    return [*find_marked(trial_id, dirs=[tmp_path]), *children]


@pytest.fixture
def runner(trial_id: str, tmp_path: Path) -> LocalProcessRunner:
    return LocalProcessRunner(trial_id, ENV, cwd=tmp_path, owned_dirs=[tmp_path])


@pytest.fixture
def daemon() -> Callable[..., str]:
    """Shell text that starts a process in a session of its own and waits until it is there."""

    def text(name: str = "daemon", *, before: str = "", output: str = ">/dev/null 2>&1") -> str:
        started = f"{before} setsid sh -c 'touch {name}.up; exec sleep 600' {output} &"
        return f"{started} while [ ! -e {name}.up ]; do sleep 0.02; done; "

    return text


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str, str], list[str]]:
    """Write a shell script and return the command that runs it."""

    def write(name: str, body: str) -> list[str]:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return [str(path)]

    return write
