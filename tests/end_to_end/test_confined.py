"""Agents that try to get out of where a backend confines them, and those that only do their work.

One suite for all backends that confine; what only one of them has is in its own file.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confined import (
    CONFINING,
    EXPECTED,
    FORK_BOMB,
    JUDGE_KEY,
    LOOKS,
    MARKS,
    READS,
    REPLACES,
    SAME,
    SOCKET,
    Project,
    args,
    confined_project,
    shell_grader,
    timeless,
)
from programs import until

from vally.processes import find_marked
from vally.testing import tree_digest

PYTHONS = {"sandbox": sys.executable, "container": "python3"}
OF_THE_IMAGE = {"password-hashes", "host-keys"}
"""Attempts at files that belong to the system; that of a container is the image's own."""


@pytest.fixture(params=CONFINING)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def project(backend: str, tmp_path: Path) -> Iterator[Project]:
    with confined_project(backend, tmp_path) as made:
        yield made


def test_what_is_hidden_cannot_be_read(project: Project) -> None:
    (project.home / ".netrc").write_text("canary-netrc")
    for name in ("vally-trial-other/home", "vally-run-other/x", "vally-eval-other/x"):
        (project.tmp / name).mkdir(parents=True)
    own = OF_THE_IMAGE if project.backend == "container" else set()
    places = {"root": project.root, "home": project.home, "cache": project.cache, "tmp": project.tmp}
    attempts = {name: line.format(**places) for name, line in READS.items() if name not in own}
    lines = {name: f"( {line} ) 2>/dev/null && echo REACHED || echo stopped" for name, line in attempts.items()}
    # With a record of the beginning there is one that could be looked for.
    changed = {"type": "diff-empty"}
    project.write(*(project.stimulus(line, changed, name=name) for name, line in lines.items()))
    env = {"HOME": str(project.home), "VALLY_CACHE_DIR": str(project.cache), "TMPDIR": str(project.tmp)}
    project.evaluate(env={**env, "JUDGE_KEY": JUDGE_KEY})
    records = project.records()
    assert {record["stimulus"] for record in records} == set(lines)
    for record in records:
        assert record["status"] == "success", record.get("errorInfo")
        said = record["trajectory"]["output"]
        assert said.strip().endswith("stopped"), (record["stimulus"], said)
        for secret in (EXPECTED, "canary", "run-command"):
            assert secret not in said


def test_nothing_outside_can_be_written(project: Project) -> None:
    places = [f"{project.outside}/x", f"{project.root}/x", "/usr/x", "/x", "/etc/passwd", "/home/x"]
    lines = [f"(echo x >> {place}) 2>/dev/null && echo REACHED {place}" for place in places]
    assert project.output("\n".join([*lines, "echo end"])).split() == ["end"]
    assert not any(Path(place).exists() for place in places if place != "/etc/passwd")


def test_the_kernel_s_settings_cannot_be_written(project: Project) -> None:
    files = "/proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches /proc/sysrq-trigger /sys/kernel/uevent_helper"
    files += " /sys/power/state /sys/fs/cgroup/*/tasks /sys/fs/cgroup/pids/cgroup.procs /sys/fs/cgroup/cgroup.procs"
    said = project.output(f"for file in {files}; do test -w $file && echo REACHED $file; done; echo end")
    assert said.split() == ["end"]


def test_links_in_the_place_of_the_trial_s_directories_lead_nowhere(project: Project) -> None:
    """What an agent puts there is followed by nobody who could reach more than the agent."""
    canary = project.outside / "canary"
    canary.write_text("REACHED")
    commands = {"command": ["/bin/sh", "-c", "sh -s 2>&1"], "continueCommand": ["/bin/sh", "{prompt_file}"]}
    grading = {"files": [{"src": "expected.txt", "dest": "given.txt", "dest_root": "assets"}]}
    turns = [REPLACES.format(outside=project.outside), f"set -- agent; {LOOKS}; echo end"]
    grader = {"type": "run-command", "config": {"command": f"set -- grader; {LOOKS}; cat $EVALUATE_ASSETS/given.txt"}}
    stimulus = {"name": "s", "turns": turns, "graders": [grader, shell_grader(f"set -- again; {LOOKS}; true")]}
    defaults = {"executor": {"name": "command", "config": commands}}
    spec = {"name": "e", "defaults": defaults, "grading_environment": grading, "stimuli": [stimulus]}
    (project.root / "eval.yaml").write_text(json.dumps(spec))
    project.evaluate()
    (record,) = project.records()
    assert record["status"] == "success", record.get("errorInfo")
    assert record["trajectory"]["output"].strip() == "end"
    assert record["gradeResult"]["passed"], record["gradeResult"]
    assert "REACHED" not in json.dumps(record)
    assert [path.name for path in project.outside.iterdir()] == ["canary"]
    canary.unlink()


def test_results_may_lie_in_the_project(project: Project) -> None:
    """What is kept of a trial before it is graded is no obstacle for graders, and they cannot see it."""
    look = f"cat made.txt {project.root}/expected.txt && ! find {project.root}/out -type f | grep ."
    kept = {"type": "diff-contains", "config": {"value": "made.txt"}}
    project.write(project.stimulus("echo hello > made.txt", kept, shell_grader(look)))
    project.evaluate()
    (record,) = project.records()
    assert record["gradeResult"]["passed"], record["gradeResult"]
    (patch,) = (project.root / "out").rglob("workspace.patch")
    assert "made.txt" in patch.read_text()


def test_temporary_files_and_caches_may_lie_in_the_project(project: Project) -> None:
    temporary = project.root / 'it\'s "here"' / "tmp"
    temporary.mkdir(parents=True)
    cache = temporary / "cache"
    graders = [
        f"cat w.txt && ! touch {project.root}/x && cat {project.root}/expected.txt",
        f"! ls -A '{cache}' {project.root}/out/* | grep .",
        '! ls -A "$(dirname "$PWD")" | grep vally-run-',
    ]
    project.write(project.stimulus("echo hi > w.txt", *map(shell_grader, graders)))
    env = {"TMPDIR": str(temporary), "VALLY_CACHE_DIR": str(cache)}
    assert project.evaluate(env=env).exit_code == 0, project.records()
    assert [path.name for path in temporary.iterdir()] == ["cache"]


def test_what_is_written_to_temporary_directories_stays_with_the_trial(project: Project) -> None:
    name = f"confined-test-{os.getpid()}"
    lines = [f"echo own > {top}/{name} && cat {top}/{name}" for top in ("/tmp", "/var/tmp", "/dev/shm", "$TMPDIR")]
    assert project.output("\n".join(lines)).split() == ["own"] * 4
    assert not any(Path(top, name).exists() for top in ("/tmp", "/var/tmp", "/dev/shm"))


@pytest.mark.parametrize(("network", "reached"), [("none", False), ("model", False), ("host", True)])
def test_the_network_is_what_was_asked_for(network: str, reached: bool, project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        line = SOCKET.format(python=PYTHONS[project.backend], port=server.getsockname()[1])
        said = project.output(line, *args(f"network={network}"))
    assert ("REACHED" in said) is reached, said
    assert reached or said.splitlines()[1:] == ["    lo"]


def test_a_fork_bomb_is_stopped_by_its_limit(project: Project) -> None:
    mark = f"bomb-{os.getpid()}"
    project.write(project.stimulus(FORK_BOMB.format(python=PYTHONS[project.backend])), env={"RUN_MARK": mark})
    project.evaluate(*args("pids=40"))
    (record,) = project.records()
    assert "Resource temporarily unavailable" in record["trajectory"]["output"]
    # In a sandbox only the agent hears of it.
    told = [line for line in record.get("warnings", ()) if "its limit of 40 processes was reached" in line]
    assert len(told) == (project.backend == "container")
    assert find_marked(None, [("RUN_MARK", mark)]) == []
    assert not list(Path("/sys/fs/cgroup").glob("*/vally-*"))


@pytest.mark.heavy
def test_an_agent_that_fills_the_disk_is_ended(project: Project) -> None:
    project.write(project.stimulus("head -c 64M /dev/zero > /tmp/big; sleep 600"))
    project.evaluate(*args("disk-limit=32m"))
    (record,) = project.records()
    assert record["errorInfo"]["code"] == "disk-limit"


def test_nothing_outlives_its_trial(project: Project) -> None:
    mark = f"trial-{os.getpid()}"
    said = project.output(
        "setsid sleep 600 >/dev/null 2>&1 &\n( ( nohup sleep 600 >/dev/null 2>&1 & ) & )\necho left",
        config={"env": {"RUN_MARK": mark}},
    )
    assert said.strip() == "left"
    assert find_marked(None, [("RUN_MARK", mark)]) == []


@pytest.mark.heavy
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_vally(how: signal.Signals, project: Project) -> None:
    mark = f"vally-{os.getpid()}"
    run = project.start("sleep 600", mark)
    run.send_signal(how)
    run.wait()
    until(lambda: not find_marked(None, [("RUN_MARK", mark)]))
    until(lambda: not list(project.tmp.iterdir()))
    until(lambda: not project.left())


def test_limits_of_time_end_what_runs_inside(project: Project) -> None:
    stubborn = "trap '' TERM; while :; do tail -f /dev/null; done"
    slow = {"type": "run-command", "config": {"command": "sh", "args": ["-c", stubborn], "timeout": "1s"}}
    after = shell_grader("! ls /proc/[0-9]*/comm | xargs cat 2>/dev/null | grep tail")
    project.write(project.stimulus("echo hi", slow, after))
    project.evaluate()
    (record,) = project.records()
    assert [grade["passed"] for grade in record["gradeResult"]["details"]] == [False, True], record["gradeResult"]


def test_what_a_program_says_arrives_whether_or_not_it_reads_its_input(project: Project) -> None:
    says = {"type": "output-contains", "config": {"substring": "said"}}
    stimuli = [project.stimulus("unread " * 20_000, says, name=f"s{number}") for number in range(10)]
    project.write(*stimuli, command=["/bin/sh", "-c", "head -c 1 >/dev/null; echo said"])
    project.evaluate()
    assert [record["trajectory"]["output"].strip() for record in project.records()] == ["said"] * 10


def test_graders_see_the_project_and_nothing_of_the_caller_s_secrets(project: Project) -> None:
    project.write(
        project.stimulus(
            "echo hi > w.txt",
            shell_grader(f"grep -q 42 {project.root}/expected.txt && grep -q hi w.txt"),
            shell_grader(f"! touch {project.root}/x"),
            shell_grader(f"! ls {project.root}/out/*/*"),
            shell_grader('test -z "$JUDGE_KEY" && test -w "$HOME" && test -w "$TMPDIR"'),
            shell_grader("test $(tail -n +3 /proc/net/dev | cut -d: -f1) = lo"),
            {"type": "program", "config": {"program": f"{project.root}/grader.sh"}},
        )
    )
    grader = project.root / "grader.sh"
    grader.write_text(
        '#!/bin/sh\ntest -s "$EVALUATE_GRADER_INPUT" && p=true\n'
        'echo "{\\"passed\\": ${p:-false}, \\"score\\": 1, \\"evidence\\": \\"input\\"}"\n'
    )
    grader.chmod(0o755)
    project.evaluate(env={"JUDGE_KEY": JUDGE_KEY})
    (record,) = project.records()
    results = [(grade["passed"], grade["evidence"]) for grade in record["gradeResult"]["details"]]
    assert [passed for passed, _ in results] == [True] * 6, results


def test_the_user_s_directories_stay_as_they_are(project: Project) -> None:
    project.write(project.stimulus("rm -rf / 2>/dev/null; echo done", shell_grader("rm -rf / 2>/dev/null; true")))
    before = {path.name: path.read_bytes() for path in project.root.iterdir()}
    outside = tree_digest(project.outside)
    project.evaluate()
    after = {path.name: path.read_bytes() for path in project.root.iterdir() if path.is_file()}
    assert (after, tree_digest(project.outside)) == (before, outside)


def test_records_are_those_of_local(project: Project) -> None:
    project.write(
        *(project.stimulus(line, shell_grader(check), name=name) for name, (line, check) in SAME.items()), timeout="4s"
    )
    seen = []
    for backend in ("local", None):
        project.evaluate(backend=backend)
        seen.append(sorted((timeless(record) for record in project.records()), key=json.dumps))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("program", ["no-such-agent", "./no-such-agent", "/etc/passwd"])
def test_a_program_that_cannot_be_started_is_told_as_on_local(program: str, project: Project) -> None:
    project.write(project.stimulus("x"), command=[program])
    seen = []
    for backend in ("local", None):
        project.evaluate(backend=backend)
        seen.append([record["errorInfo"] for record in project.records()])
    assert seen[0] == seen[1]


WRONG: Mapping[str, Mapping[str, str]] = {
    "sandbox": {
        "grade-network=model": "'grade-network' cannot be 'model'",
        "setup-network=model": "use 'none' or 'host'",
        "network=moon": "network",
        "pids=0": "a number of processes",
        "memory=lots": "a size such as",
        "memory=1m": "at least 64m",
        "ro=here": "an absolute path",
        "hide=/no/such/path": "does not exist",
        "rw=/": "root directory",
        "netwerk=none": "network",
    },
    "container": {
        "pids=0": "a number of processes",
        "memory=lots": "a size such as",
        "memory=1m": "at least 64m",
        "cpus=all": "a number of processors",
        "mount=here:/there": "two absolute paths",
        "mount=/no/such/path:/there": "does not exist",
        "mount=/usr:/proc": "nothing can be mounted",
        "network=a b": "the name of a network",
        "grade-network=model": "for the agent alone",
        "user=a b": "a user as in",
        "pull=sometimes": "pull",
        "engine-arg=--network=host": "is set by the argument 'network'",
        "engine-arg=x": "an option such as",
        "startup-timeout=5": "duration",
        "imge=x": "image",
        "dockerfile=Dockerfile": "leave one out",
    },
}


@pytest.mark.parametrize(
    ("backend", "argument"),
    [pytest.param(name, text, marks=MARKS[name]) for name, wrong in WRONG.items() for text in wrong],
)
def test_wrong_arguments_are_told(argument: str, project: Project) -> None:
    project.write(project.stimulus("echo hi"))
    result = project.evaluate(*args(argument))
    assert result.exit_code == 2
    assert WRONG[project.backend][argument] in result.stderr
    assert not (project.root / "out").exists()
