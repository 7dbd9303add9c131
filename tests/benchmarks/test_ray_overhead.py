"""What a trial costs on a cluster of this machine beside one on `local`.

Run with `-s -m heavy` to see the figures. The agent does nothing, so all that is measured is overhead.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from vally.testing import CliResult, run_cli
from vally_backend_ray import link

pytest.importorskip("ray")
pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("ray")]
TRIALS = 500


class Watch:
    """Looks at processes of workers until it is told to stop: the most memory of one, in bytes."""

    def __init__(self) -> None:
        self.most = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(0.5):
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    if any("ray::Worker" in word for word in process.cmdline()):
                        self.most = max(self.most, process.memory_info().rss)


def evaluate(root: Path, backend: str) -> CliResult:
    stimuli = [
        {"name": "s", "prompt": "hello", "graders": [{"type": "output-contains", "config": {"substring": "hello"}}]}
    ]
    spec = {"name": "e", "defaults": {"executor": "mock", "runs": TRIALS}, "stimuli": stimuli}
    (root / "eval.yaml").write_text(json.dumps(spec))
    return run_cli(["eval", "-e", "eval.yaml", "--backend", backend, "--workers", "8", "--require-pass"], cwd=root)


def figures(run: CliResult) -> dict[str, Any]:
    """The summary of a run, after it is clear that it ran what it should."""
    assert run.exit_code == 0, run.stderr
    *trials, summary = run.records
    assert len({record["itemId"] for record in trials}) == len(trials) == TRIALS
    found: dict[str, Any] = summary
    return found


def test_overhead_of_a_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    framed = link.framed
    monkeypatch.setattr(link, "framed", lambda value: sent.append(len(data := framed(value))) or data)
    began = time.monotonic()
    local = figures(evaluate(tmp_path, "local"))["durationMs"] / TRIALS
    between = time.monotonic()
    with Watch() as watch:
        cluster = figures(evaluate(tmp_path, "ray"))["durationMs"] / TRIALS
    ended = time.monotonic()
    around = ended - between - cluster * TRIALS / 1000
    assert watch.most > 0
    print(
        f"\n{TRIALS} trials, 8 at once: local {local:.1f} ms, ray {cluster:.1f} ms a trial, "
        f"ratio {cluster / local:.1f}; "
        f"start and end of the cluster {around:.1f} s (of all {ended - began:.1f} s); "
        f"{sum(sent) / TRIALS / 1024:.1f} KiB sent to the bridge a trial; a worker has {watch.most / 2**20:.0f} MiB"
    )
