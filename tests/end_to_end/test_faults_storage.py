"""Storage that fails: nothing that is on disk is lost, the run says what happened, and its exit code is 1."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import check_closed, evaluate, finish, records_of, run_dir, start, write_spec

from vally import GraderResult, GraderSpec, index_results
from vally.run.results_file import ResultsFile


class FailingWrites:
    """Lets the n-th and later writes of records fail, until it is `mended`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, first: int) -> None:
        self.calls = 0
        self.mended = False
        real = os.write

        def write(descriptor: int, data: bytes) -> int:
            if bytes(data).startswith((b'{"type":"trial-result"', b'{"type":"run-summary"')):
                self.calls += 1
                if self.calls >= first and not self.mended:
                    # As a full disk does: a part of the line still fits.
                    real(descriptor, data[: len(data) // 2])
                    raise OSError(28, "No space left on device")
            return real(descriptor, data)

        monkeypatch.setattr("vally.run.results_file.os.write", write)


def test_a_failed_write_ends_the_run_and_keeps_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_spec(tmp_path, ["one"])
    FailingWrites(monkeypatch, 4)
    result = evaluate(tmp_path, "--runs", "9", "--workers", "2", "--output", "jsonl")
    assert result.exit_code == 1
    told = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(told) == 1
    assert "No space left on device" in told[0]
    assert told[0].startswith(f"error: cannot write out/{run_dir(tmp_path).name}/results.jsonl: ")
    assert "continue with --resume" in result.stderr
    path = run_dir(tmp_path) / "results.jsonl"
    index = index_results(path)
    assert index.problems == []
    assert len(index.entries) == 3
    assert {record["status"] for record in index.records()} == {"success"}
    # Reporters saw what is on disk; of the rest only the summary, which says that the run is partial.
    *lines, summary = result.stdout.splitlines()
    assert "".join(f"{line}\n" for line in lines) == path.read_text()
    assert (json.loads(summary)["partial"], json.loads(summary)["stopReason"]) == (True, "error")
    # A trial that has no record was not measured, although it was run.
    totals = json.loads(summary)["totals"]
    assert (totals["passed"], totals["failed"], totals["errors"], totals["skipped"]) == (3, 0, 0, 6)
    assert not (path.parent / ".lock").exists()


def test_what_could_not_be_written_is_written_when_there_is_space_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_spec(tmp_path, ["one"])
    writes = FailingWrites(monkeypatch, 3)
    real = ResultsFile.append

    def append(self: ResultsFile, line: bytes) -> None:
        try:
            real(self, line)
        finally:
            writes.mended = writes.calls >= 3

    monkeypatch.setattr(ResultsFile, "append", append)
    result = evaluate(tmp_path, "--runs", "9", "--workers", "2", "--output", "jsonl")
    assert result.exit_code == 1
    summary = check_closed(result.records, 9)
    assert (summary["partial"], summary["stopReason"]) == (True, "error")
    assert result.stdout == (run_dir(tmp_path) / "results.jsonl").read_text()


def test_a_limit_on_file_sizes_ends_the_run_with_1(tmp_path: Path) -> None:
    write_spec(tmp_path, [{"name": "s", "prompt": "p" * 8000}], executor="mock")

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    code, _, err = finish(start(tmp_path, "--runs", "60", "--workers", "2", preexec_fn=limited))
    assert code == 1, err
    assert "File too large" in err
    index = index_results(run_dir(tmp_path) / "results.jsonl")
    assert index.problems == []
    assert 0 < len(index.entries) < 60
    assert index.summary is None


def as_ordinary_user() -> None:
    """Take from a process of root the right to read and write everywhere; others do not have it."""
    if os.geteuid() == 0:
        drop_capability, dac_override, dac_read_search = 24, 1, 2
        for capability in (dac_override, dac_read_search):
            assert ctypes.CDLL(None).prctl(drop_capability, capability, 0, 0, 0) == 0


def test_an_output_directory_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    write_spec(tmp_path, ["fine"])
    (tmp_path / "out").mkdir(mode=0o555)
    code, out, err = finish(start(tmp_path, preexec_fn=as_ordinary_user))
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "error: out: cannot create a run directory: Permission denied [output-dir]",
        "  choose a writable directory with --output-dir",
    ]
    # Nothing that was made for the run is left.
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize("path", ["eval.yaml", "fixture.txt"])
def test_files_that_may_not_be_read_are_named(tmp_path: Path, path: str) -> None:
    environment = {"files": [{"src": "fixture.txt", "dest": "fixture.txt"}]}
    write_spec(tmp_path, [{"name": "s", "prompt": "fine", "environment": environment}], executor="mock")
    (tmp_path / "fixture.txt").write_text("x")
    (tmp_path / path).chmod(0)
    code, _, err = finish(start(tmp_path, preexec_fn=as_ordinary_user))
    assert code == 1
    told = err + "".join(file.read_text() for file in tmp_path.glob("out/*/results.jsonl"))
    assert path in told
    assert "ermission denied" in told


def test_a_file_in_the_place_of_the_output_directory(tmp_path: Path) -> None:
    write_spec(tmp_path, ["fine"])
    (tmp_path / "out").write_text("")
    result = evaluate(tmp_path)
    assert result.exit_code == 1
    assert "error: out: cannot create a run directory: File exists [output-dir]" in result.stderr


class Blocker:
    """Puts a file where the directories of trials should go, and a directory in the place of a report."""

    def grade(self, grader_input: Any) -> Any:
        (grader_input.run_dir / "eval").write_text("")
        (grader_input.run_dir / "eval-results.md").mkdir(exist_ok=True)
        return GraderResult.verdict(True, "blocked", name="blocker", kind="code")


def test_side_files_and_reports_that_cannot_be_written_cost_no_result(tmp_path: Path) -> None:
    write_spec(tmp_path, [{"name": "s", "prompt": "fine", "graders": [{"type": "blocker"}]}])
    blocker = GraderSpec(name="blocker", summary="blocks", factory=Blocker)
    result = evaluate(tmp_path, plugins=[blocker])
    assert result.exit_code == 0
    records = records_of(tmp_path)
    assert check_closed(records, 1)["passed"] is True
    assert "side file not written" in " ".join(records[0]["warnings"])
    assert "reporter 'markdown' failed and is disabled" in result.stderr


def test_two_runs_started_at_once_do_not_meet(tmp_path: Path) -> None:
    write_spec(tmp_path, ["one", "two"])
    both = [start(tmp_path, "--runs", "5") for _ in range(2)]
    assert [finish(process)[0] for process in both] == [0, 0]
    directories = list((tmp_path / "out").iterdir())
    assert len(directories) == 2
    for directory in directories:
        lines = (directory / "results.jsonl").read_text().splitlines()
        check_closed([json.loads(line) for line in lines], 10)


def test_runs_of_one_instant_get_directories_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vally.run.run_dir.directory_name", lambda _: "2026-07-24T01-00-00-000Z")
    write_spec(tmp_path, ["one"])
    names = [evaluate(tmp_path).run_dir for _ in range(3)]
    assert [path.name.removeprefix("2026-07-24T01-00-00-000Z") for path in names if path] == ["", "-2", "-3"]


def test_jumps_of_the_clock_change_no_duration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter(range(10**9))

    def jumping() -> str:
        # Every look at the wall clock is hours away from the last one, forwards and backwards in turns.
        return f"2026-07-24T{12 + 6 * (-1) ** next(looks):02}:00:00.000Z"

    monkeypatch.setattr("vally.run.attempts.timestamp", jumping)
    monkeypatch.setattr("vally.run.engine.timestamp", jumping)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    write_spec(tmp_path, ["one", "two"])
    result = evaluate(tmp_path, "--runs", "3")
    assert result.exit_code == 0
    check_closed(result.records, 6)
    assert all(0 <= record["durationMs"] < 60_000 for record in result.records)
    assert all(0 <= item["durationMs"] < 60_000 for item in result.records[-1]["evals"])
    assert {record["startedAt"][11:13] for record in result.records[:-1]} == {"06", "18"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """`out` on a file system of 400 KiB."""
    disk = tmp_path / "out"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("file systems cannot be mounted here")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.skipif(shutil.which("mount") is None, reason="there is no mount")
def test_a_full_disk_ends_the_run_which_goes_on_when_there_is_space(small_disk: Path, tmp_path: Path) -> None:
    write_spec(tmp_path, ["one"])
    code, _, err = finish(start(tmp_path, "--runs", "300"))
    assert code == 1
    assert "No space left on device" in err
    assert "internal error" not in err
    index = index_results(run_dir(tmp_path) / "results.jsonl")
    assert index.problems == []
    assert 0 < len(index.entries) < 300
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    command = [sys.executable, "-m", "vally", "eval", "--resume", str(run_dir(tmp_path))]
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "VALLY_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    summary = check_closed(records_of(tmp_path), 300)
    assert (summary["partial"], summary["totals"]["passed"]) == (False, 300)
