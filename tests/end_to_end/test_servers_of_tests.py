"""Servers that tests start leave nothing behind, however the tests end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from checkout import ROOT
from postgres import programs

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed"),
]
SCRIPT = """
import time
from postgres import server
with server() as url:
    print(url, flush=True)
    time.sleep(600)
"""


def left_of(port: int) -> list[str]:
    """Processes and directories of the server at a port."""
    word = f"port={port}"
    running = [item.pid for item in psutil.process_iter(["cmdline"]) if word in (item.info["cmdline"] or [])]
    pattern = "vally-postgres-*/data/postmaster.opts"
    kept = [path for path in Path(tempfile.gettempdir()).glob(pattern) if word in text_of(path)]
    return [*map(str, running), *map(str, kept)]


def text_of(path: Path) -> str:
    """What a file says that may be removed meanwhile."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_database_ends_with_the_tests_that_asked_for_it(number: signal.Signals) -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests/support")}
    tests = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert tests.stdout is not None
    found = re.search(r":(\d+)$", tests.stdout.readline().strip())
    assert found is not None
    port = int(found[1])
    assert left_of(port)
    os.killpg(tests.pid, number)
    tests.wait()
    tests.stdout.close()
    deadline = time.monotonic() + 60
    while left_of(port) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left_of(port) == []
