"""The lines on stdout are those of `results.jsonl`, byte for byte, each as soon as it is there."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from vally import GraderResult, TrialResult
from vally.testing import ScriptedRun, event, trajectory, trial_result
from vally_reporter_jsonl.reporter import JsonlReporter

HOSTILE = "naïve \u2028 \x1b[31m \x00 \ud800 \r\n ::error::x"
RESULTS = [
    trial_result("a", GraderResult.verdict(True, HOSTILE, name="g")),
    trial_result("b", status="error", error=HOSTILE),
    trial_result("c", status="skipped", skip_reason="cancelled"),
    trial_result("d", trajectory=trajectory(event("assistant_message", content=HOSTILE))),
]


def play(directory: Path, stream: Any, *, output: str = "jsonl", results: list[TrialResult] = RESULTS) -> Path:
    run = ScriptedRun(directory, results, output=output)
    run.play(JsonlReporter(), stdout=stream)
    return run.run_dir / "results.jsonl"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "utf-16"])
@pytest.mark.parametrize("newline", ["", "\r\n"])
def test_the_bytes_of_the_file(tmp_path: Path, encoding: str, newline: str) -> None:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding=encoding, newline=newline)
    path = play(tmp_path, stream)
    assert buffer.getvalue() == path.read_bytes()
    records = [json.loads(line) for line in buffer.getvalue().split(b"\n")[:-1]]
    assert [record["type"] for record in records] == ["trial-result"] * 4 + ["run-summary"]


def test_a_stream_of_text_alone(tmp_path: Path) -> None:
    stream = io.StringIO(newline="")
    path = play(tmp_path, stream)
    assert stream.getvalue().encode() == path.read_bytes()


def test_each_record_is_flushed(tmp_path: Path) -> None:
    class Pipe(io.BytesIO):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[bytes] = []

        def flush(self) -> None:
            if self.getvalue() not in (b"", *self.seen[-1:]):
                self.seen.append(self.getvalue())

    pipe = Pipe()
    path = play(tmp_path, io.TextIOWrapper(pipe, encoding="utf-8"))
    lines = path.read_bytes().splitlines(keepends=True)
    assert pipe.seen == [b"".join(lines[: number + 1]) for number in range(len(lines))]


def test_what_was_written_before_stays_in_front(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="utf-8")
    stream.write("before\n")
    path = play(tmp_path, stream)
    assert buffer.getvalue() == b"before\n" + path.read_bytes()


@pytest.mark.parametrize("output", ["text", "json"])
def test_other_kinds_of_output_get_nothing(tmp_path: Path, output: str) -> None:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="utf-8")
    play(tmp_path, stream, output=output)
    assert buffer.getvalue() == b""


def test_a_closed_stdout_is_told_to_the_run(tmp_path: Path) -> None:
    class Closed(io.BytesIO):
        def write(self, data: Any) -> int:
            raise BrokenPipeError

    class Unbuffered(io.TextIOBase):
        buffer = Closed()

    with pytest.raises(BrokenPipeError):
        play(tmp_path, Unbuffered())


def test_nothing_is_kept(tmp_path: Path) -> None:
    reporter = JsonlReporter()
    run = ScriptedRun(tmp_path, RESULTS, output="jsonl")
    with contextlib.redirect_stdout(io.StringIO()):
        states = []
        for method, item in run.events():
            getattr(reporter, method, lambda _: None)(item)
            states.append(dict(vars(reporter)))
    assert all(state == states[0] for state in states)
