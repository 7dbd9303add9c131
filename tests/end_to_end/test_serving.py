"""What `vally serve` says on standard error."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest


def answered(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request)
        return connection.recv(100)


@pytest.mark.parametrize(
    ("words", "told"),
    [([], []), (["--verbose"], ["GET /api/health"]), (["--log-level", "info"], ["INFO ", "WARNING "])],
)
def test_requests_of_strangers_are_no_warnings(tmp_path: Path, words: list[str], told: list[str]) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/results.jsonl").write_text('{"type": "trial-result", "stimulus": "s", "status": "success"}\n')
    argv = [sys.executable, "-m", "vally", "serve", ".", "--port", "0", *words]
    # Nobody warns of what Python itself finds old in libraries.
    env = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore"}
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, cwd=tmp_path, env=env, stdout=pipe, stderr=pipe, text=True) as server:
        try:
            found = None
            while found is None:
                line = server.stdout.readline()
                assert line, server.stderr.read()
                found = re.search(r":(\d+)/api$", line.strip())
            port = int(found[1])
            assert answered(port, b"GARBAGE\r\n\r\n").startswith(b"HTTP/1.1 400 ")
            request = (
                b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
            )
            assert answered(port, request).startswith(b"HTTP/1.1 200 ")
        finally:
            server.terminate()
        _, said = server.communicate(timeout=30)
    assert server.returncode == 0
    assert bool(said) == bool(told), said
    assert all(text in said for text in told), said
