"""`--resume`: whatever ended a run, continuing it gives the records that an undisturbed run has."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from programs import check_closed, evaluate, finish, records_of, run_dir, start, until, write_spec

from vally.testing import CliResult

pytestmark = pytest.mark.heavy

STIMULI = ("fine", "raise", "nan")
RUNS = 2
CHANGING = {"runId", "startedAt", "completedAt", "durationMs", "phases", "timestamp", "wallTimeMs", "sessionID"}
PATHS = {"workDir", "workspacePath", "id", "trajectoryId", "jsonlPath"}


def settled(value: Any) -> Any:
    """A record without what differs between two runs of the same trial."""
    if isinstance(value, Mapping):
        return {key: settled(item) for key, item in value.items() if key not in CHANGING | PATHS}
    return [settled(item) for item in value] if isinstance(value, list) else value


def trials(records: list[dict[str, Any]]) -> dict[str, Any]:
    return {record["itemId"]: settled(record) for record in records if record["type"] == "trial-result"}


def resume(root: Path, *words: str, **options: Any) -> CliResult:
    from misbehaving import EXECUTORS, GRADERS

    from vally.testing import run_cli

    directory = str(run_dir(root).relative_to(root))
    plugins = [*EXECUTORS, *GRADERS, *options.pop("plugins", ())]
    result = run_cli(["eval", "--resume", directory, *words], cwd=root, plugins=plugins, **options)
    assert "Traceback" not in result.stdout + result.stderr
    return result


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("undisturbed")
    write_spec(root, STIMULI)
    evaluate(root, "--runs", str(RUNS))
    return root


def copied(source: Path, target: Path) -> Path:
    shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True)
    manifest = run_dir(target) / "run-manifest.json"
    manifest.write_text(manifest.read_text().replace(str(source), str(target)))
    return run_dir(target) / "results.jsonl"


def check_same(root: Path, undisturbed: Path) -> None:
    records = records_of(root)
    summary = check_closed(records, len(STIMULI) * RUNS)
    assert trials(records) == trials(records_of(undisturbed))
    before = records_of(undisturbed)[-1]
    assert settled(summary) == settled(before)
    assert summary["runId"] == before["runId"]
    left = {path.name for path in run_dir(root).iterdir()} - {path.name for path in run_dir(undisturbed).iterdir()}
    assert left <= {"results.jsonl.prev"}


def cuts(length: int, text: bytes) -> Iterator[int]:
    """Where a file may end after a kill: around the ends of lines and within them."""
    ends = [index + 1 for index, byte in enumerate(text) if byte == 10]
    yield from (0, 1, length - 1, length)
    for end in ends[:3]:
        yield from (end - 1, end, end + 7)


@pytest.mark.parametrize("number", range(13))
def test_a_file_cut_anywhere_becomes_whole(number: int, undisturbed: Path, tmp_path: Path) -> None:
    path = copied(undisturbed, tmp_path)
    whole = path.read_bytes()
    cut = list(cuts(len(whole), whole))[number]
    path.write_bytes(whole[:cut])
    result = resume(tmp_path)
    assert result.exit_code == 1, result.stderr  # one stimulus always fails to run
    check_same(tmp_path, undisturbed)


@pytest.mark.parametrize("state", ["no-file", "only-former", "dead-lock", "leftovers", "finished"])
def test_what_a_kill_may_leave_beside_the_file(state: str, undisturbed: Path, tmp_path: Path) -> None:
    path = copied(undisturbed, tmp_path)
    if state == "no-file":
        path.unlink()
    if state == "only-former":
        path.rename(path.with_name("results.jsonl.prev"))
    if state == "dead-lock":
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        lock = {"host": socket.gethostname(), "pid": ended.pid, "startedAt": "2026-01-01T00:00:00.000Z"}
        path.with_name(".lock").write_text(json.dumps(lock))
    if state == "leftovers":
        path.with_name(".results.jsonl.0123456789ab.tmp").write_bytes(b"half")
        path.with_name(".results.jsonl.prev.0123456789ab.tmp").write_bytes(b"half")
    result = resume(tmp_path)
    assert ("took over the lock" in result.stderr) == (state == "dead-lock")
    check_same(tmp_path, undisturbed)


def test_kept_records_are_not_touched(undisturbed: Path, tmp_path: Path) -> None:
    path = copied(undisturbed, tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line).get("status") == "success"]
    path.write_bytes(kept[0].replace(b'{"type"', b'{"mine":1.50,"type"') + kept[1])
    resume(tmp_path)
    now = path.read_bytes().splitlines(keepends=True)
    assert now[:2] == [kept[0].replace(b'{"type"', b'{"mine":1.50,"type"'), kept[1]]
    assert path.with_name("results.jsonl.prev").read_bytes() == b"".join(now[:2])


def test_an_earlier_attempt_of_a_trial_leaves_no_file(undisturbed: Path, tmp_path: Path) -> None:
    path = copied(undisturbed, tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    again = json.loads(lines[0])
    stale = (
        run_dir(tmp_path) / "eval" / again["stimulus"] / again["model"] / str(again["trialIndex"]) / "workspace.patch"
    )
    assert stale.parent.is_dir()
    stale.write_text("stale")
    path.write_bytes(b"".join(lines[1:]))
    resume(tmp_path)
    assert stale.parent.is_dir()
    assert not stale.exists()


@pytest.mark.parametrize("after", [0, 1, 30])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=lambda item: item.name)
def test_a_run_that_was_ended_goes_on(tmp_path: Path, number: signal.Signals, after: int) -> None:
    write_spec(tmp_path, ["one", "two"])
    process = start(tmp_path, "--runs", "40", "--workers", "2")

    def lines() -> int:
        found = list(tmp_path.glob("out/*/results.jsonl"))
        return found[0].read_bytes().count(b"\n") if found else 0

    until(lambda: list(tmp_path.glob("out/*/run-manifest.json")) and lines() >= after)
    process.send_signal(number)
    finish(process)
    # A run that was killed may have left a torn last line.
    lines_left = (run_dir(tmp_path) / "results.jsonl").read_bytes().split(b"\n")[:-1]
    partial = [json.loads(line) for line in lines_left]
    command = [sys.executable, "-m", "vally", "eval", "--resume", str(run_dir(tmp_path))]
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "VALLY_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    records = records_of(tmp_path)
    summary = check_closed(records, 80)
    assert (summary["partial"], summary["status"], summary["totals"]["passed"]) == (False, "completed", 80)
    assert {record["runId"] for record in records} == {
        json.loads((run_dir(tmp_path) / "run-manifest.json").read_text())["runId"]
    }
    finished = {item["itemId"]: item for item in partial if item.get("status") == "success"}
    now = {item["itemId"]: item for item in records[:-1]}
    assert all(now[item_id] == record for item_id, record in finished.items())


def test_a_second_process_is_refused(undisturbed: Path, tmp_path: Path) -> None:
    path = copied(undisturbed, tmp_path)
    before = path.read_bytes()
    lock = {"host": socket.gethostname(), "pid": os.getpid(), "startedAt": "2999-01-01T00:00:00.000Z"}
    path.with_name(".lock").write_text(json.dumps(lock))
    result = resume(tmp_path)
    assert result.exit_code == 1
    where = path.with_name(".lock").relative_to(tmp_path)
    assert f"error: {where}: the run directory is in use by process {os.getpid()}" in result.stderr
    assert path.read_bytes() == before


def test_a_spec_or_a_skill_that_changed_is_named(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "skills" / name).mkdir(parents=True)
        (tmp_path / "skills" / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: d\n---\n")
    environment = {"skills": ["skills/one", "skills/two"]}
    write_spec(tmp_path, ["fine"], executor="script", environment=environment)
    from vally.testing import ScriptedExecutor

    plugins = [ScriptedExecutor(["hello"]).record("script")]
    assert evaluate(tmp_path, plugins=plugins).exit_code == 0
    (tmp_path / "skills" / "two" / "SKILL.md").write_text("---\nname: two\ndescription: other\n---\n")
    write_spec(tmp_path, ["fine"], executor="script", environment=environment, description="changed")
    result = resume(tmp_path, plugins=plugins)
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "error: --resume: 2 files changed since the run began",
        "  spec eval.yaml",
        "  skill skills/two",
        "  start a new run, or grade the records of this one with 'vally grade'",
    ]


def test_another_plan_is_refused(undisturbed: Path, tmp_path: Path) -> None:
    path = copied(undisturbed, tmp_path)
    manifest = path.with_name("run-manifest.json")
    stored = json.loads(manifest.read_text())
    stored["items"][0] = "other"
    manifest.write_text(json.dumps(stored))
    result = resume(tmp_path)
    assert result.exit_code == 1
    assert "the plan is not that of the run any more" in result.stderr
    assert "only in the run: other" in result.stderr


@pytest.mark.parametrize(
    "words", [["--runs", "3"], ["--model", "m"], ["-e", "eval.yaml"], ["--seed", "1"]], ids=" ".join
)
def test_options_that_would_change_the_plan_are_refused(words: list[str], undisturbed: Path) -> None:
    result = resume(undisturbed, *words)
    assert result.exit_code == 2
    assert "cannot be combined with --resume" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the run had --param WORD: give it again"),
        (["--param", "WORD=other"], "--param WORD differs from its value in the run"),
        (["--param", "WORD=fine", "--param", "MORE=1"], "--param MORE was not given to the run"),
    ],
)
def test_parameters_must_be_given_again(words: list[str], message: str, tmp_path: Path) -> None:
    write_spec(tmp_path, [{"name": "s", "prompt": "${WORD}", "graders": []}])
    assert evaluate(tmp_path, "--param", "WORD=fine").exit_code == 0
    result = resume(tmp_path, *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "fine" not in (run_dir(tmp_path) / "run-manifest.json").read_text()
    assert resume(tmp_path, "--param", "WORD=fine").exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the run had --backend-args disk-limit, min-free: give them again"),
        (["disk-limit=1g"], "the run had --backend-args min-free: give it again"),
        (["disk-limit=2g", "min-free=1m"], "--backend-args disk-limit differs from its value in the run"),
    ],
)
def test_arguments_of_the_backend_must_be_given_again(words: list[str], message: str, tmp_path: Path) -> None:
    def given(*values: str) -> list[str]:
        return [word for value in values for word in ("--backend-args", value)]

    write_spec(tmp_path, [{"name": "s", "prompt": "x", "graders": []}])
    whole = given("disk-limit=1g", "min-free=1m")
    assert evaluate(tmp_path, "--backend", "local", *whole).exit_code == 0
    result = resume(tmp_path, *given(*words))
    assert result.exit_code == 2
    assert f"error: --resume: {message}" in result.stderr
    assert resume(tmp_path, *whole).exit_code == 0


MOVING = """
from typing import ClassVar
from vally import BackendSpec, hookimpl
from vally_backend_local import LocalArgs, LocalBackend

class Args(LocalArgs):
    changeable: ClassVar[frozenset[str]] = frozenset({"place"})
    place: str = "here"

class Moving(LocalBackend):
    async def prepare(self, args, context):
        await super().prepare(LocalArgs(), context)

@hookimpl
def vally_backends():
    yield BackendSpec(name="moving", summary="runs here or there", factory=Moving, config=Args)
"""


@pytest.mark.parametrize("words", [[], ["--backend-args", "place=there"]])
def test_what_only_says_where_trials_run_may_be_given_otherwise(words: list[str], tmp_path: Path) -> None:
    write_spec(tmp_path, [{"name": "s", "prompt": "x", "graders": []}])
    (tmp_path / "moving.py").write_text(MOVING)
    backend = ["--backend", "./moving.py"]
    assert evaluate(tmp_path, *backend, "--backend-args", "place=first").exit_code == 0
    result = resume(tmp_path, *words)
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no run-manifest.json in"),
        ("{", "run-manifest.json of out/run cannot be read"),
        ("[]", "is not a manifest that this version knows"),
        ('{"type": "run-manifest", "version": 2}', "is not a manifest that this version knows"),
        ('{"type": "run-manifest", "version": 1, "kind": "experiment"}', "is a run of kind 'experiment', not 'eval'"),
    ],
)
def test_a_directory_that_is_no_run_of_an_eval(content: str | None, message: str, tmp_path: Path) -> None:
    (tmp_path / "out" / "run").mkdir(parents=True)
    if content is not None:
        (tmp_path / "out" / "run" / "run-manifest.json").write_text(content)
    result = resume(tmp_path)
    assert result.exit_code == 1
    assert message in result.stderr


def test_errors_and_what_never_ran_run_again_but_refusals_of_the_executor_stay(tmp_path: Path) -> None:
    from vally import TrialSkipped
    from vally.testing import ScriptedExecutor

    attempts: list[str] = []

    def step(stimulus: Any, _: Any) -> str:
        attempts.append(stimulus.name)
        if stimulus.name == "declined":
            raise TrialSkipped("not for me")
        if stimulus.name == "broken" and len(attempts) < 4:
            raise OSError("no")
        return "hello"

    plugins = [ScriptedExecutor([step]).record("script")]
    write_spec(tmp_path, ["declined", "broken", "later"], executor="script")
    first = evaluate(tmp_path, "--workers", "1", "--fail-fast", plugins=plugins)
    assert first.exit_code == 1
    assert attempts == ["declined", "broken"]
    attempts.append("-")
    second = resume(tmp_path, plugins=plugins)
    assert attempts == ["declined", "broken", "-", "broken", "later"]
    assert second.exit_code == 0
    statuses = {record["stimulus"]: record["status"] for record in records_of(tmp_path)[:-1]}
    assert statuses == {"declined": "skipped", "broken": "success", "later": "success"}


def test_budgets_count_what_is_kept(tmp_path: Path) -> None:
    from vally import Event
    from vally.testing import ScriptedExecutor

    usage = Event(type="token_usage", data={"inputTokens": 90, "outputTokens": 10, "model": "m"})
    plugins = [ScriptedExecutor([usage, "hello"]).record("script")]
    write_spec(tmp_path, ["a", "b", "c", "d"], executor="script")
    first = evaluate(tmp_path, "--workers", "1", "--max-tokens-total", "150", plugins=plugins)
    assert first.exit_code == 1
    summary = records_of(tmp_path)[-1]
    assert (summary["stopReason"], summary["totals"]["skipped"]) == ("budget-tokens", 2)
    second = resume(tmp_path, "--max-tokens-total", "300", plugins=plugins)
    assert second.exit_code == 1
    summary = check_closed(records_of(tmp_path), 4)
    assert (summary["totals"]["totalTokens"], summary["totals"]["skipped"]) == (300, 1)
    assert resume(tmp_path, "--max-tokens-total", "1000", plugins=plugins).exit_code == 0
    assert records_of(tmp_path)[-1]["totals"]["totalTokens"] == 400


def test_machine_output_has_every_line_of_the_file(undisturbed: Path, tmp_path: Path) -> None:
    path = copied(undisturbed, tmp_path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    result = resume(tmp_path, "--output", "jsonl")
    assert sorted(result.stdout.splitlines()) == sorted(path.read_text(encoding="utf-8").splitlines())
