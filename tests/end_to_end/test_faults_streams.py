"""Standard streams that are closed, full, or of another encoding."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from programs import check_closed, finish, records_of, run_dir, start, write_spec

NAME = "Prüfung 試験 😀"


def write_named(root: Path, runs: int = 1) -> None:
    stimulus = {"name": NAME, "prompt": f"say {NAME}", "graders": [{"type": "completed"}]}
    write_spec(root, [stimulus], executor="mock", defaults={"runs": runs})


@pytest.mark.parametrize("output", ["text", "json", "jsonl"])
@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"},
        {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=["c", "ascii", "no-utf8"],
)
def test_no_locale_breaks_a_run(tmp_path: Path, env: dict[str, str], output: str) -> None:
    write_named(tmp_path)
    code, out, err = finish(start(tmp_path, "--output", output, "--junit", env=env))
    assert code == 0, err
    assert records_of(tmp_path)[0]["stimulus"] == NAME
    assert NAME in (run_dir(tmp_path) / "eval-results.md").read_text(encoding="utf-8")
    if output == "jsonl":
        assert [json.loads(line).get("stimulus") for line in out.splitlines()] == [NAME, None]
    if output == "json":
        assert json.loads(out)["evals"][0]["stimuli"][0]["name"] == NAME


@pytest.mark.parametrize("output", ["text", "json", "jsonl"])
def test_a_reader_that_leaves_early_ends_the_run_with_141(tmp_path: Path, output: str) -> None:
    write_named(tmp_path, runs=300)
    reader, writer = os.pipe()
    process = start(tmp_path, "--output", output, "--verbose", stdout=writer)
    os.close(writer)
    if output == "jsonl":
        assert os.read(reader, 1)
    os.close(reader)
    code, _, err = finish(process)
    assert code == 141, err
    if output == "jsonl":
        summary = check_closed(records_of(tmp_path), 300)
        assert summary["partial"] is True


@pytest.mark.parametrize(
    "words", [["--help"], ["eval", "--help"], ["eval", "-e", "eval.yaml", "--dry-run"], ["plugins", "list"]]
)
def test_a_reader_that_is_gone_ends_other_commands_with_141(tmp_path: Path, words: list[str]) -> None:
    write_named(tmp_path)
    reader, writer = os.pipe()
    os.close(reader)
    process = vally(tmp_path, *words, stdout=writer)
    os.close(writer)
    code, _, err = finish(process)
    assert (code, err) == (141, "")


def test_a_stderr_that_nobody_reads_costs_nothing(tmp_path: Path) -> None:
    write_named(tmp_path, runs=3)
    reader, writer = os.pipe()
    os.close(reader)
    process = start(tmp_path, "--output", "jsonl", stderr=writer)
    os.close(writer)
    code, out, _ = finish(process)
    assert code == 0
    check_closed([json.loads(line) for line in out.splitlines()], 3)


@pytest.mark.parametrize("closed", ["0", "1", "2", "0 1 2"])
def test_streams_that_are_closed_from_the_start(tmp_path: Path, closed: str) -> None:
    write_named(tmp_path)

    def close() -> None:
        for descriptor in closed.split():
            os.close(int(descriptor))

    code, _, err = finish(start(tmp_path, "--output", "jsonl", preexec_fn=close))
    assert code == 0, err
    assert check_closed(records_of(tmp_path), 1)["passed"] is True


def test_a_full_device_as_stdout_is_an_error_and_no_traceback(tmp_path: Path) -> None:
    write_named(tmp_path)
    with Path("/dev/full").open("wb") as full:
        code, _, err = finish(start(tmp_path, stdout=full))
    assert code == 1
    assert "No space left on device" in err
    check_closed(records_of(tmp_path), 1)


def vally(root: Path, *words: str, **options: Any) -> subprocess.Popen[bytes]:
    import sys

    environ = {"PATH": os.environ["PATH"], "HOME": str(root), "VALLY_CACHE_DIR": str(root / "cache")}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-m", "vally", *words], cwd=root, env=environ, **{**streams, **options})
