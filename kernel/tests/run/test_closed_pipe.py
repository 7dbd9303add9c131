"""Whether anybody reads the report, also while stdout belongs to machine output."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, sys
from vally.cli.machine_output import reserved_stdout
from vally.run.closed_pipe import report_is_unread

reader, writer = os.pipe()
os.dup2(writer, 1)
os.close(writer)
if sys.argv[1] == "gone":
    os.close(reader)
with reserved_stdout(sys.argv[2] == "machine"):
    unread = report_is_unread()
print(unread, file=sys.stderr)
os._exit(0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are not polled there")
@pytest.mark.parametrize("output", ["machine", "text"])
@pytest.mark.parametrize(("reader", "unread"), [("gone", "True"), ("there", "False")])
def test_a_reader_that_is_gone_is_noticed(reader: str, unread: str, output: str) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, reader, output], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == unread
