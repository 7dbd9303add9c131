"""What a killed run left in the temporary directory goes with the next run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vally.testing import ScriptedExecutor, process_sentinel
from vally_backend_local.copying import remove_tree
from vally_backend_local.scratch import make_scratch, sweep

KILLED = """
import os, signal, sys
from pathlib import Path
from vally_backend_local.scratch import make_scratch
temporary = Path(sys.argv[1])
scratch = make_scratch(temporary, keep_workspaces=sys.argv[2] == "keep")
for kind in ("around", "trial"):
    (temporary / f"vally-{kind}-{scratch.token}0001" / "deep").mkdir(parents=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_a_run(temporary: Path, keep: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(temporary), keep], check=False)
    assert done.returncode == -9


def age(temporary: Path) -> None:
    for path in temporary.iterdir():
        os.utime(path, (time.time() - 600, time.time() - 600))


@pytest.mark.parametrize(("keep", "kinds"), [("keep", {"around"}), ("remove", set())])
def test_a_killed_run_is_swept(tmp_path: Path, keep: str, kinds: set[str]) -> None:
    kill_a_run(tmp_path, keep)
    sweep(tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
    age(tmp_path)
    sweep(tmp_path)
    assert {path.name.split("-")[1] for path in tmp_path.iterdir()} == kinds


def test_a_living_run_is_not(tmp_path: Path) -> None:
    scratch = make_scratch(tmp_path, keep_workspaces=False)
    (tmp_path / f"vally-around-{scratch.token}0001").mkdir()
    (tmp_path / "vally-around-unknown").mkdir()
    age(tmp_path)
    sweep(tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
    scratch.close()
    assert not scratch.directory.exists()


def test_one_killed_before_it_had_made_anything_is_swept(tmp_path: Path) -> None:
    (tmp_path / "vally-run-00000000").mkdir()
    age(tmp_path)
    sweep(tmp_path)
    assert not list(tmp_path.iterdir())


SWEEPING = """
import sys
from pathlib import Path
from vally_backend_local.scratch import make_scratch, sweep
temporary = Path(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
sweep(temporary)
scratch = make_scratch(temporary, keep_workspaces=False)
(temporary / f"vally-around-{scratch.token}0001").mkdir()
print(scratch.token, flush=True)
sys.stdin.readline()
"""


def test_runs_that_sweep_at_once_leave_each_other_alone(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"vally-run-{number:08x}").mkdir()
        (tmp_path / f"vally-trial-{number:08x}0001" / "deep").mkdir(parents=True)
    age(tmp_path)
    pipe = subprocess.PIPE
    runs = [
        subprocess.Popen([sys.executable, "-c", SWEEPING, str(tmp_path)], stdin=pipe, stdout=pipe, text=True)
        for _ in range(4)
    ]
    try:
        for run in runs:
            assert run.stdout.readline() == "ready\n"
        for run in runs:
            run.stdin.write("\n")
            run.stdin.flush()
        for run in runs:
            assert run.stdout.readline().strip()
        # What lives is not swept, however old it looks.
        age(tmp_path)
        sweep(tmp_path)
        assert len(list(tmp_path.iterdir())) == 2 * len(runs)
    finally:
        for run in runs:
            run.kill()
            run.communicate()
    age(tmp_path)
    sweep(tmp_path)
    assert not list(tmp_path.iterdir())


def test_links_are_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    (precious / "deep").mkdir(parents=True)
    precious.chmod(0o755)
    kill_a_run(tmp_path, "remove")
    token = next(tmp_path.glob("vally-run-*")).name.removeprefix("vally-run-")
    (tmp_path / f"vally-around-{token}0002").symlink_to(precious)
    age(tmp_path)
    sweep(tmp_path)
    assert (precious / "deep").is_dir()
    remove_tree(tmp_path / f"vally-around-{token}0002")
    assert precious.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_an_agent_that_replaces_its_workspace_by_a_link_harms_nobody(bench, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("precious")
    precious.chmod(0o755)

    def replace(_, options):
        options.work_dir.rmdir()
        options.work_dir.symlink_to(precious)

    assert bench.run(bench.stimulus(bench.diff_has()), ScriptedExecutor([replace])).status == "success"
    assert (precious / "file").read_text() == "precious"
    assert precious.stat().st_mode & 0o777 == 0o755


def test_a_run_sweeps_at_its_start(bench) -> None:
    kill_a_run(bench.temporary, "remove")
    age(bench.temporary)
    bench.run(bench.stimulus())
    assert bench.left() == []


TRIAL = """
import os, sys
from pathlib import Path
import anyio
from vally import (ExecutorChoice, JudgeSettings, Redactor, RunContext, Scoring, Stimulus, TrialItem, TrialOptions)
from vally.testing import ScriptedExecutor, plugin_host
from vally_backend_local.backend import LocalBackend

root = Path(sys.argv[1])
env = {"PATH": os.environ["PATH"], "TMPDIR": str(root / "tmp")}

async def work(_, options):
    await options.runner.start(["/bin/sh", "-c", "setsid sleep 600 & sleep 600"])
    print(options.trial_id, flush=True)
    await anyio.sleep(600)

async def main():
    backend = LocalBackend()
    context = RunContext(run_id="r", cache_dir=root / "cache", project_root=root, process_env=env)
    await backend.prepare({}, context)
    item = TrialItem(
        run_id="r", item_id="i", eval_name="e", eval_file_path="e", eval_index=0, trial_index=0, total_trials=1,
        stimulus=Stimulus(name="s", prompt="p", turns=("p",)), executor=ExecutorChoice(name="scripted"),
        spec_dir=root, spec_path=root / "eval.yaml", project_root=root, scoring=Scoring(),
        judge=JudgeSettings(model="m"), timeout_ms=600_000, work_dir=root,
    )
    options = TrialOptions(
        host=plugin_host(), executor=ScriptedExecutor([work]), process_env=env, redactor=Redactor({})
    )
    await backend.run_trial(item, options)

anyio.run(main)
"""


def test_processes_and_directories_of_a_killed_program_go_at_once(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with subprocess.Popen([sys.executable, "-c", TRIAL, str(tmp_path)], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        trial_id = program.stdout.readline().strip()
        assert any(path.name.startswith("vally-around-") for path in temporary.iterdir())
        program.kill()
    with process_sentinel(trial_id, patience=30):
        until = time.monotonic() + 30
        while list(temporary.glob("vally-*")) and time.monotonic() < until:
            time.sleep(0.05)
    assert list(temporary.glob("vally-*")) == []
