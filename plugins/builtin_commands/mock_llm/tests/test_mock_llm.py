"""`vally mock-llm`, as its users start and end it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from vally import is_loopback
from vally.testing import run_cli


@contextmanager
def started(cwd: Path, *arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The command in a process of its own, and the base URL that it printed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "vally", "mock-llm", *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


def ask(url: str, prompt: str) -> Any:
    body = json.dumps({"messages": [{"role": "user", "content": prompt}]}).encode()
    request = urllib.request.Request(f"{url}/v1/chat/completions", body, {"Authorization": "Bearer s3cret-key"})
    with urllib.request.urlopen(request, timeout=20) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path, "--log", "log.jsonl", "--set", "WHO=you") as (url, process):
        assert url.startswith("http://127.0.0.1:")
        assert ask(url, "!say hello ${WHO}") == "hello you"
        process.send_signal(number)
        assert process.wait(20) == 0
    log = (tmp_path / "log.jsonl").read_text(encoding="utf-8")
    assert json.loads(log)["step"] == 0
    assert "s3cret-key" not in log


def test_a_foreign_address_is_a_warning(tmp_path: Path) -> None:
    with started(tmp_path, "--host", "0.0.0.0") as (_, process):
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=20)
    assert stderr == "warning: --host 0.0.0.0: anybody who reaches this address can use the server\n"


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.8.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("a.b", False)],
)
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--host", "198.51.100.1"], 1, "error: --host, --port: cannot listen there: "),
        (["--log", "missing/log.jsonl"], 1, "error: --log: cannot write missing/log.jsonl: "),
        (["--set", "novalue"], 2, "'novalue' is not of the form key=value"),
        (["--port", "70000"], 2, "70000 is not in the range"),
    ],
)
def test_what_stops_it_from_starting(tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    result = run_cli(["mock-llm", *arguments], cwd=tmp_path)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr
