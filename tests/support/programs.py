"""Runs of the program for tests about faults: specs, processes, and what every run must leave behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import misbehaving

from vally.testing import CliResult, run_cli

PLUGIN = Path(misbehaving.__file__)
SAYS_HELLO = {"type": "output-contains", "config": {"substring": "hello"}}


def write_spec(
    root: Path, stimuli: Sequence[Any], *, name: str = "eval.yaml", executor: Any = "bad", **keys: Any
) -> None:
    """Write a spec; a stimulus may be a prompt alone, which is its name too and has one grader that passes."""
    made = [
        item if isinstance(item, Mapping) else {"name": item, "prompt": item, "graders": [SAYS_HELLO]}
        for item in stimuli
    ]
    defaults = {"executor": executor, "timeout": "60s", **keys.pop("defaults", {})}
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"name": path.stem, "defaults": defaults, "stimuli": made, **keys}
    path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")


def evaluate(root: Path, *words: str, plugins: Sequence[object] = (), **options: Any) -> CliResult:
    """Run `vally eval -e eval.yaml` in this process with the plugins that misbehave."""
    every = [*misbehaving.EXECUTORS, *misbehaving.GRADERS, *plugins]
    result = run_cli(["eval", "-e", "eval.yaml", "--output-dir", "out", *words], cwd=root, plugins=every, **options)
    assert "Traceback" not in result.stdout + result.stderr
    assert "internal error" not in result.stderr
    return result


def start(root: Path, *words: str, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[bytes]:
    """Start `python -m vally eval -e eval.yaml` with the plugins that misbehave."""
    command = [sys.executable, "-m", "vally", "eval", "-e", "eval.yaml", "--output-dir", "out"]
    command += ["--executor-plugin", str(PLUGIN), "--grader-plugin", str(PLUGIN), *words]
    # What a run that is killed cannot remove must not outlive the test.
    scratch = root / "scratch"
    scratch.mkdir(exist_ok=True)
    environ = {"PATH": os.environ["PATH"], "HOME": str(root), "TMPDIR": str(scratch)}
    environ["VALLY_CACHE_DIR"] = str(root / "cache")
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    return subprocess.Popen(command, cwd=root, env={**environ, **(env or {})}, **{**streams, **options})


def finish(process: subprocess.Popen[bytes], seconds: float = 60) -> tuple[int, str, str]:
    """Wait for a process; returns exit code, stdout and stderr, and kills it when it takes longer."""
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
        process.wait()
    stderr = (err or b"").decode("utf-8", "replace")
    assert "Traceback" not in stderr, stderr
    return process.returncode, (out or b"").decode("utf-8", "replace"), stderr


def run_dir(root: Path) -> Path:
    """The one run directory below `out`."""
    (found,) = (root / "out").iterdir()
    return found


def records_of(root: Path) -> list[dict[str, Any]]:
    """The records of the one run below `out`."""
    text = (run_dir(root) / "results.jsonl").read_text(encoding="utf-8")
    return [json.loads(line, parse_constant=_refuse) for line in text.split("\n")[:-1]]


def _refuse(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


def check_closed(records: Sequence[Mapping[str, Any]], planned: int) -> Mapping[str, Any]:
    """Every planned item has exactly one record, and the summary is last; returns the summary."""
    *trials, summary = records
    assert summary["type"] == "run-summary"
    assert {record["type"] for record in trials} <= {"trial-result"}
    items = [record["itemId"] for record in trials]
    assert len(items) == len(set(items)) == planned
    assert summary["totals"]["trials"] == planned
    return summary


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
