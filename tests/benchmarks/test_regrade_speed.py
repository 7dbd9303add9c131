"""How long re-grading takes, as a multiple of what `json.loads` needs for the same lines, and in how much memory.

Run with `-s` to see ratios and memory. Times depend on the machine, so nothing is asserted about them; that memory does
not grow with the number of trials is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vally import PluginHost, grade_trajectory, load_trajectory

TRIALS = 10_000
FEW = 1_000
ROUNDS = 3
STEPS = 8
WORDS = ["read", "the", "file", "and", "change", "its", "first", "test", "so", "that", "values", "are", "checked"]
GRADERS: list[dict[str, Any]] = [
    {"type": "output-contains", "config": {"substring": "done"}},
    {"type": "output-matches", "config": {"pattern": "^all .*done$"}},
    {"type": "tool-calls", "config": {"required": ["bash"], "disallowed": ["rm"]}},
    {"type": "token-budget", "config": {"max": 5000}},
    {"type": "completed"},
]


def text(start: int, count: int) -> str:
    return " ".join(WORDS[(start + index) % len(WORDS)] for index in range(count))


def event(kind: str, second: int, **data: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": f"2026-01-01T00:00:{second:02d}.000Z", "turn": 0, "data": data}


def events(number: int) -> Iterator[dict[str, Any]]:
    """Fifty events: a prompt, eight steps of six events, a last word."""
    yield event("user_message", 0, content=text(number, 20))
    for step in range(1, STEPS + 1):
        call = {"toolName": "bash", "toolCallId": f"c{step}"}
        yield event("turn_start", step, turnId=str(step))
        yield event("assistant_message", step, content=text(number + step, 30))
        yield event("tool_call", step, **call, arguments={"command": f"cat {text(step, 4)}"}, turnId=str(step))
        yield event("tool_result", step, **call, success=True, result=text(number * step, 40))
        yield event("token_usage", step, inputTokens=100, outputTokens=20, model="m")
        yield event("turn_end", step, turnId=str(step))
    yield event("assistant_message", 9, content="all of it is done")


def record(number: int) -> dict[str, Any]:
    stimulus = f"s{number % 5}"
    trajectory = {
        "id": str(number),
        "stimulus": {"name": stimulus, "prompt": "p"},
        "events": list(events(number)),
        "output": "all of it is done",
        "workDir": "/none",
        "metadata": {"model": "m", "executor": "mock"},
        "endReason": "completed",
    }
    names = {"runId": "r", "evalName": "e", "evalFilePath": "eval.yaml", "variant": "main", "model": "m"}
    return {
        "type": "trial-result",
        **names,
        "itemId": f"eval.yaml::main::m::{stimulus}::trial-{number // 5}",
        "stimulus": stimulus,
        "trialIndex": number // 5,
        "totalTrials": TRIALS // 5,
        "status": "success",
        "trajectory": trajectory,
        "gradeResult": None,
    }


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("regrade")
    spec = {"name": "e", "graders": GRADERS, "stimuli": [{"name": f"s{n}", "prompt": "p"} for n in range(5)]}
    (root / "eval.yaml").write_text(json.dumps(spec))
    for count in (FEW, TRIALS):
        with (root / f"{count}.jsonl").open("w") as file:
            for number in range(count):
                file.write(json.dumps(record(number), separators=(",", ":")) + "\n")
    return root


def loading_time(path: Path) -> float:
    """Processor seconds of `json.loads` for all lines, at best."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        with path.open("rb") as file:
            for line in file:
                json.loads(line)
        best = min(best, time.process_time() - started)
    return best


def regrade(root: Path, count: int, form: str) -> tuple[float, float]:
    """Processor seconds and MiB at most of one `vally grade`."""
    words = ["grade", "-e", "eval.yaml", f"{count}.jsonl", "--output", form, "--require-pass"]
    process = subprocess.Popen(
        [sys.executable, "-m", "vally", *words], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    # Linux counts in KiB, macOS in bytes.
    unit = 1024 if sys.platform == "linux" else 1024 * 1024
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit


@pytest.mark.heavy
@pytest.mark.parametrize("form", ["text", "jsonl"])
def test_the_command(project: Path, form: str) -> None:
    base = loading_time(project / f"{TRIALS}.jsonl")
    few_seconds, few_memory = regrade(project, FEW, form)
    seconds, memory = min(regrade(project, TRIALS, form) for _ in range(2))
    print(
        f"\nvally grade --output {form}: {TRIALS} trials x 50 events x {len(GRADERS)} graders in {seconds:.2f}s, "
        f"{seconds / base:.1f}x json.loads ({base:.2f}s); {memory:.0f} MiB, {few_memory:.0f} MiB for {FEW} trials "
        f"({few_seconds:.2f}s)"
    )
    assert memory < few_memory + 40


@pytest.mark.heavy
def test_the_library(project: Path) -> None:
    path, host = project / f"{FEW}.jsonl", PluginHost()
    base = loading_time(path)
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        with path.open("rb") as file:
            for line in file:
                trajectory = load_trajectory(json.loads(line)["trajectory"])
                assert grade_trajectory(trajectory, GRADERS, host=host).passed
        best = min(best, time.process_time() - started)
    print(f"\ngrade_trajectory: {FEW} trials in {best:.2f}s, {best / base:.1f}x json.loads ({base:.2f}s)")
