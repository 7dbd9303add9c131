"""Trials on a cluster of two workers on this machine, and what happens when parts of it die."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from programs import check_closed, finish, records_of, run_dir, until

pytest.importorskip("ray")
pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("ray")]
TRIALS = 40
WORKER = "ray::Worker"


class Evaluation:
    """A project whose agents are shell scripts that bear a mark, and the runs of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mark = f"agent-{uuid.uuid4()}"
        self.said = root / "stderr"
        for name in ("tmp", "home"):
            (root / name).mkdir()

    def write(self, script: str, *, trials: int = TRIALS) -> None:
        graders = [{"type": "output-contains", "config": {"substring": "done"}}]
        executor = {"name": "command", "config": {"command": ["/bin/sh", "-c", "sh -s 2>&1", self.mark]}}
        defaults = {"executor": executor, "runs": trials, "timeout": "10m"}
        stimuli = [{"name": "s", "prompt": script, "graders": graders}]
        (self.root / "eval.yaml").write_text(json.dumps({"name": "e", "defaults": defaults, "stimuli": stimuli}))

    def start(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "vally", "eval", *words]
        # The directory is too deep for the sockets of a cluster, which is as it may be for users too.
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.root / "home"), "TMPDIR": str(self.root / "tmp")}
        environ["VALLY_CACHE_DIR"] = str(self.root / "cache")
        with self.said.open("wb") as file:
            return subprocess.Popen(
                command,
                cwd=self.root,
                env={**environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
            )

    def run(self, *words: str) -> subprocess.Popen[bytes]:
        return self.start("-e", "eval.yaml", "--backend", "ray", "--output-dir", "out", "--workers", "8", *words)

    def finish(self, process: subprocess.Popen[bytes], seconds: float = 120) -> tuple[int, list[str]]:
        """Exit code and what was said beside progress."""
        code, _, _ = finish(process, seconds)
        lines = self.said.read_text(encoding="utf-8").splitlines()
        assert not any("Traceback" in line for line in lines)
        return code, [line for line in lines if not line.startswith("[")]

    def recorded(self) -> int:
        with suppress(OSError, ValueError):
            return len((run_dir(self.root) / "results.jsonl").read_bytes().splitlines())
        return 0

    def agents(self) -> list[psutil.Process]:
        """Processes of agents, wherever they went."""
        return [process for process in psutil.process_iter() if self.mark in _command_line(process)]

    def cluster(self) -> list[psutil.Process]:
        """Processes of vally, of its cluster and of guardians, but for agents: they inherit the cache directory."""
        wanted = f"VALLY_CACHE_DIR={self.root / 'cache'}"
        return [process for process in psutil.process_iter() if wanted in _environment(process)]

    def workers(self) -> list[psutil.Process]:
        return [process for process in self.cluster() if WORKER in _command_line(process)]

    def check_nothing_is_left(self) -> None:
        until(lambda: not self.agents() and not self.cluster())
        # Directories of trials whose worker was killed are removed by the next run at the latest, as on `local`.
        until(
            lambda: not [path for path in (self.root / "tmp").iterdir() if path.name.startswith(("vr-", "vally-ray-"))]
        )


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _environment(process: psutil.Process) -> list[str]:
    try:
        return [f"{name}={value}" for name, value in process.environ().items()]
    except (psutil.Error, OSError):
        return []


@pytest.fixture
def evaluation(tmp_path: Path) -> Iterator[Evaluation]:
    made = Evaluation(tmp_path)
    yield made
    left = [*made.agents(), *made.cluster()]
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    assert not left


def trials_of(evaluation: Evaluation) -> list[dict[str, Any]]:
    """The records of trials, exactly one for each item of the plan."""
    records = records_of(evaluation.root)
    check_closed(records, TRIALS)
    assert sorted((record["stimulus"], record["trialIndex"]) for record in records[:-1]) == [
        ("s", number) for number in range(TRIALS)
    ]
    return records[:-1]


def check_right(records: list[dict[str, Any]]) -> None:
    """Each record tells of an agent that did its work and was graded for it."""
    for record in records:
        assert record["status"] == "success", record["errorInfo"]
        assert "done" in record["trajectory"]["output"]
        assert (record["gradeResult"]["passed"], record["gradeResult"]["score"]) == (True, 1)


def killed_with_an_agent(evaluation: Evaluation, chance: random.Random) -> psutil.Process:
    """Kill a worker while an agent of it runs, so that at least one trial is certainly lost with it."""
    while True:
        until(lambda: len(evaluation.workers()) == 2)
        victim = chance.choice(evaluation.workers())
        # While the worker stands still it can deliver nothing.
        victim.suspend()
        if any(evaluation.mark in _command_line(child) for child in victim.children()):
            victim.kill()
            return victim
        victim.resume()


def test_a_worker_killed_at_a_random_moment_loses_no_trial_and_records_none_twice(evaluation: Evaluation) -> None:
    seed = secrets.randbelow(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    evaluation.write("sleep 0.$(($$ % 5 + 3)); echo done")
    process = evaluation.run()
    moment = chance.randrange(TRIALS * 3 // 4)
    until(lambda: evaluation.recorded() >= moment)
    victim = killed_with_an_agent(evaluation, chance)
    assert evaluation.finish(process) == (0, [])
    records = trials_of(evaluation)
    check_right(records)
    again = [record for record in records if record["attempts"] > 1]
    assert again
    for record in again:
        assert record["attempts"] == 2
        assert any(f"pid {victim.pid}" in warning and "was lost" in warning for warning in record["warnings"])
    assert {record["backend"] for record in records} == {"ray/local"}
    evaluation.check_nothing_is_left()


def test_an_item_that_kills_its_workers_is_an_error_in_the_end(evaluation: Evaluation) -> None:
    # The parent of an agent's shell is the worker.
    evaluation.write("kill -9 $(ps -o ppid= -p $(ps -o ppid= -p $$)); sleep 60", trials=1)
    assert evaluation.finish(evaluation.run("--backend-args", "max-losses=1")) == (1, [])
    record, summary = records_of(evaluation.root)
    assert (record["status"], record["errorInfo"]["code"], record["attempts"]) == ("error", "worker-lost", 2)
    assert record["errorInfo"]["retryable"]
    assert summary["totals"]["errors"] == 1
    evaluation.check_nothing_is_left()


def test_a_killed_driver_leaves_nothing_running_and_a_run_to_continue(evaluation: Evaluation) -> None:
    # The child leaves its session and its parent, as daemons do.
    evaluation.write(f"(setsid sh -c 'sleep 300; : {evaluation.mark}' &) ; sleep 0.5; echo done")
    process = evaluation.run()
    until(lambda: evaluation.recorded() >= 5 and evaluation.agents())
    process.kill()
    process.communicate()
    evaluation.check_nothing_is_left()
    results = run_dir(evaluation.root) / "results.jsonl"
    before = results.read_bytes()
    assert 5 <= len(before.splitlines()) < TRIALS
    directory = str(run_dir(evaluation.root).relative_to(evaluation.root))
    code, _ = evaluation.finish(evaluation.start("--resume", directory))
    assert code == 0
    # What was recorded before stays as it is; the whole is the set that a run without a break would have given.
    assert results.read_bytes().startswith(before)
    check_right(trials_of(evaluation))
    evaluation.check_nothing_is_left()


@pytest.mark.parametrize("times", [1, 2])
def test_interrupting_ends_agents_everywhere(evaluation: Evaluation, times: int) -> None:
    evaluation.write(f"(setsid sh -c 'sleep 300; : {evaluation.mark}' &) ; sleep 300; echo done")
    process = evaluation.run()
    until(lambda: len(evaluation.agents()) >= 8)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        until(lambda: "stopping" in evaluation.said.read_text(encoding="utf-8"))
    code, _ = evaluation.finish(process)
    assert code == 130
    if times == 1:
        assert {record["status"] for record in trials_of(evaluation)} <= {"skipped", "success"}
    evaluation.check_nothing_is_left()
