"""Memory of a long run does not grow with the trials that are finished."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

TRIALS = 5_000
EARLY = 500


def resident_kib(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return None


@pytest.mark.heavy
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the memory of a process from /proc")
def test_memory_is_flat_over_5000_trials(tmp_path: Path) -> None:
    spec = {
        "name": "flat",
        "defaults": {"executor": "mock", "runs": 50},
        "stimuli": [
            {
                "name": f"s{number}",
                "prompt": "hello " * 20,
                "graders": [{"type": "output-contains", "config": {"substring": "hello"}}, {"type": "completed"}],
            }
            for number in range(TRIALS // 50)
        ],
    }
    (tmp_path / "eval.yaml").write_text(json.dumps(spec))
    process = subprocess.Popen(
        [sys.executable, "-m", "vally", "eval", "-e", "eval.yaml", "--output-dir", "out", "--junit"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "VALLY_CACHE_DIR": str(tmp_path / "cache")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    early = latest = 0
    while process.poll() is None:
        done = sum(path.read_bytes().count(b"\n") for path in tmp_path.glob("out/*/results.jsonl"))
        now = resident_kib(process.pid)
        if done >= EARLY and not early:
            early = now or 0
        # The last look counts while trials still run: afterwards the reports are written from the file.
        if now and done < TRIALS:
            latest = now
        time.sleep(0.2)
    assert process.returncode == 0
    assert early
    assert latest <= early * 1.10, f"{early} KiB after {EARLY} trials, {latest} KiB at the end"
