"""What a run costs beside the agent: start, trials, turns and workspaces, as ratios.

Run with `-s -m heavy` to see the figures. Ratios are taken inside one test, because machines differ; what is asserted
is far from what is measured, so that a busy machine breaks nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from measuring import INSPECT, PROMPTFOO, Peer, cpu_seconds, least, vally

pytestmark = pytest.mark.heavy
PEERS = pytest.mark.parametrize("peer", [INSPECT, PROMPTFOO], ids=lambda peer: peer.name)
STIMULI = 5


def show(line: str) -> None:
    print(f"\n  {line}", end="", flush=True)


def write_eval(root: Path, *, files: int = 0) -> None:
    """Trivial stimuli for the scripted executor; with `files` one stimulus that stages and diffs so many."""
    grader: dict[str, object] = {"type": "completed"}
    stimuli = [{"name": f"s{number}", "prompt": "hi", "graders": [grader]} for number in range(STIMULI)]
    if files:
        (root / "tree").mkdir()
        for number in range(files):
            path = root / "tree" / f"d{number % 50:02}" / f"f{number:05}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"line {number}\n" * 60)
        (root / "fixtures").mkdir()
        (root / "fixtures" / "s0.json").write_text(json.dumps({"output": "hi", "files": {"d00/new.txt": "new\n"}}))
        grader = {"type": "diff-contains", "config": {"value": "+new"}}
        stimuli = [
            {
                "name": "s0",
                "prompt": "hi",
                "graders": [grader],
                "environment": {"files": [{"src": "tree", "dest": "."}]},
            }
        ]
    executor = {"name": "mock", "config": {"fixtureDir": "fixtures"}} if files else "mock"
    (root / "eval.yaml").write_text(json.dumps({"name": "b", "defaults": {"executor": executor}, "stimuli": stimuli}))


def run_words(runs: int) -> list[str]:
    return vally("eval", "-e", "eval.yaml", "--runs", str(runs), "--output-dir", "out", "-q", "--require-pass")


def test_start(tmp_path: Path) -> None:
    commands = {"python": [sys.executable, "-c", "pass"], "version": vally("--version"), "help": vally("--help")}
    took = least(commands, tmp_path)
    for name in ("version", "help"):
        show(f"vally --{name}: {took[name] * 1000:.0f} ms CPU, {took[name] / took['python']:.1f} times python -c pass")
    assert took["version"] < 5 * took["python"]


@PEERS
@pytest.mark.parametrize("option", ["--version", "--help"])
def test_start_against(peer: Peer, option: str, tmp_path: Path) -> None:
    took = least({"vally": vally(option), "peer": [*peer.words(), option]}, tmp_path)
    show(f"{option}: {peer.name} takes {took['peer'] / took['vally']:.1f} times as long")
    assert took["peer"] > took["vally"]


def test_a_trial_costs_the_same_however_many_there_are(tmp_path: Path) -> None:
    write_eval(tmp_path)
    small, middle, large = (cpu_seconds(run_words(runs), tmp_path) for runs in (1, 100, 1000))
    few, many = (middle - small) / (99 * STIMULI), (large - small) / (999 * STIMULI)
    show(f"start and 5 trials: {small:.2f} s; a trial: {few * 1000:.2f} ms of 500, {many * 1000:.2f} ms of 5,000")
    show(f"5,000 trials: {large:.1f} s CPU")
    assert many < 2 * few


def peer_words(peer: Peer, root: Path, count: int) -> list[str]:
    """A run of as many trivial samples, without a network."""
    if peer is INSPECT:
        (root / "trivial.py").write_text(INSPECT_TASK)
        words = ["eval", "trivial.py@trivial", "-T", f"n={count}", "--model", "mockllm/model"]
        return [*peer.words(), *words, "--display", "none", "--log-dir", "logs"]
    tests = [{"vars": {"number": number}, "assert": [{"type": "contains", "value": "Say"}]} for number in range(count)]
    config = {"prompts": ["Say hello {{number}}"], "providers": ["echo"], "tests": tests}
    (root / "promptfooconfig.json").write_text(json.dumps(config))
    words = ["eval", "-c", "promptfooconfig.json", "--no-cache", "--no-table", "--no-progress-bar", "--no-share"]
    return [*peer.words(), *words]


INSPECT_TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate


def answer(messages, tools, tool_choice, config):
    output = ModelOutput.from_content("mockllm/model", "Default output")
    output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
    return output


@task
def trivial(n: int = 1):
    rows = [Sample(id=i, input=f"Say hello {i}", target="Default output") for i in range(n)]
    model = get_model("mockllm/model", custom_outputs=answer)
    return Task(dataset=rows, solver=generate(), scorer=includes(), model=model)
"""


@PEERS
def test_a_thousand_trials_against(peer: Peer, tmp_path: Path) -> None:
    write_eval(tmp_path)
    names = ("TELEMETRY", "UPDATE", "REMOTE_GENERATION")
    env = {f"PROMPTFOO_DISABLE_{name}": "1" for name in names} | {"PROMPTFOO_CONFIG_DIR": str(tmp_path / "config")}
    words = peer_words(peer, tmp_path, 1000)
    own = min(cpu_seconds(run_words(1000 // STIMULI), tmp_path) for _ in range(2))
    other = min(cpu_seconds(words, tmp_path, env) for _ in range(2))
    show(f"1,000 trivial trials: vally {own:.1f} s, {peer.name} {other:.1f} s, {other / own:.1f} times as long")
    assert other > own


def test_an_agent_turn(tmp_path: Path) -> None:
    from vally import Redactor, TrajectoryBuilder, TrialResult
    from vally.run.limits import fit_trial_record
    from vally.run.recording import redacted_trial
    from vally.run.results_file import ResultsFile
    from vally.testing import executor_options, stimulus

    options, redactor = executor_options(tmp_path), Redactor({"A_TOKEN": "abcdefghijklmnop"})

    def record(turns: int, file: ResultsFile) -> None:
        builder = TrajectoryBuilder(stimulus(), options, executor="bench", version="1")
        builder.user_message("Do it.")
        for number in range(turns):
            builder.turn_start()
            builder.assistant_message("I will call it.")
            builder.tool_call("bash", call_id=f"c{number}", arguments={"command": "ls -la", "n": number})
            builder.tool_result(f"c{number}", success=True, result="one\ntwo\n")
            builder.token_usage(100, 20, model="m")
            builder.turn_end()
        names = {
            "run_id": "r",
            "item_id": "i",
            "eval_name": "e",
            "eval_file_path": "p",
            "variant": "main",
            "stimulus": "s",
        }
        trajectory = builder.finish("completed")
        result = TrialResult(**names, model="m", trial_index=0, total_trials=1, status="success", trajectory=trajectory)
        file.append(fit_trial_record(redacted_trial(result, redactor), "trajectory.json").line)

    costs = {}
    with ResultsFile(tmp_path / "results.jsonl") as file:
        for turns in (50, 1000):
            costs[turns] = min(cpu(partial(record, turns, file)) for _ in range(3)) / turns * 1000
    show(f"a turn (call, result, usage), recorded: {costs[50]:.2f} ms of 50, {costs[1000]:.2f} ms of 1,000")
    assert costs[1000] < 3 * costs[50]


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def git_floor(root: Path, number: int) -> None:
    """What nobody can do without: copy the tree, and ask git what changed against a baseline made once."""
    copy, git = root / f"copy-{number}", ["git", f"--git-dir={root / 'base.git'}", f"--work-tree={root}/copy-{number}"]
    env = {"GIT_INDEX_FILE": str(root / f"index-{number}"), "PATH": os.environ["PATH"]}
    shutil.copytree(root / "tree", copy)
    if not (root / "base.git").exists():
        subprocess.run(["git", "init", "-q", "--bare", str(root / "base.git")], check=True)
        env["GIT_INDEX_FILE"] = str(root / "base.index")
        subprocess.run([*git, "add", "-A"], cwd=copy, env=env, check=True)
        (root / "base.tree").write_bytes(subprocess.check_output([*git, "write-tree"], cwd=copy, env=env))
        return
    shutil.copy(root / "base.index", root / f"index-{number}")
    (copy / "d00" / "new.txt").write_text("new\n")
    subprocess.run([*git, "add", "-A"], cwd=copy, env=env, check=True)
    tree = (root / "base.tree").read_text().strip()
    subprocess.run([*git, "diff", "--cached", tree], cwd=copy, env=env, check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("files", [100, 5000])
def test_a_workspace_against_copying_and_git_alone(files: int, tmp_path: Path) -> None:
    write_eval(tmp_path, files=files)
    rounds = 20 if files < 1000 else 5
    cpu_seconds(run_words(1), tmp_path)  # fills the cache
    one, several = (cpu_seconds(run_words(runs), tmp_path) for runs in (1, 1 + rounds))
    own = (several - one) / rounds * 1000
    phases = phases_of(tmp_path)
    git_floor(tmp_path, 0)
    start = time.perf_counter()
    before = resource_children()
    for number in range(1, 1 + rounds):
        git_floor(tmp_path, number)
    floor = (resource_children() - before) / rounds * 1000
    wall = (time.perf_counter() - start) / rounds * 1000
    show(f"{files} files: a trial costs {own:.0f} ms CPU; copying and git alone {floor:.0f} ms CPU, {wall:.0f} ms")
    show(f"{files} files: median phases in ms {phases}")
    assert phases["agentMs"] < 1000


def resource_children() -> float:
    import resource

    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(item.ru_utime + item.ru_stime for item in spent)


def phases_of(root: Path) -> dict[str, float]:
    """The median of each phase over the trials of the newest run."""
    import statistics

    newest = max((root / "out").iterdir())
    records = [json.loads(line) for line in (newest / "results.jsonl").read_text().splitlines()[:-1]]
    names = ("setupMs", "agentMs", "captureMs", "gradeMs")
    return {name: statistics.median(record["phases"][name] for record in records) for name in names}
