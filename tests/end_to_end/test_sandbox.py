"""Agents that try to get out of the sandbox, and those that only do their work."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confined import (
    EXPECTED,
    FORK_BOMB,
    JUDGE_KEY,
    READS,
    SAME,
    SOCKET,
    Project,
    as_nobody,
    assert_links_lead_nowhere,
    assert_results_may_lie_in_the_project,
    shell_grader,
    timeless,
)
from programs import records_of, until

from vally.processes import find_marked
from vally.testing import tree_digest

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path, "sandbox")
    yield made
    assert list(made.outside.iterdir()) == []


@pytest.mark.parametrize("attempt", READS)
def test_what_is_hidden_cannot_be_read(attempt: str, project: Project, tmp_path: Path) -> None:
    places = {"root": project.root, "home": tmp_path / "home", "cache": tmp_path / "cache", "tmp": tmp_path / "tmp"}
    for name in ("home", "tmp"):
        places[name].mkdir()
    (places["home"] / ".netrc").write_text("canary-netrc")
    line = READS[attempt].format(**places)
    env = {"HOME": str(places["home"]), "VALLY_CACHE_DIR": str(places["cache"]), "TMPDIR": str(places["tmp"])}
    said = project.output(f"{line} && echo REACHED || echo stopped", env={**env, "JUDGE_KEY": JUDGE_KEY})
    assert said.strip().endswith("stopped")
    for secret in (EXPECTED, "canary", "run-command"):
        assert secret not in said


@pytest.mark.parametrize(
    "place", ["{outside}/x", "{root}/x", "/usr/x", "/x", "/dev/x", "/etc/passwd", "/run/x", "/home/x"]
)
def test_nothing_outside_can_be_written(place: str, project: Project) -> None:
    path = place.format(outside=project.outside, root=project.root)
    said = project.output(f"echo x >> {path} && echo REACHED; echo end")
    assert "REACHED" not in said
    assert not Path(path).exists() or "passwd" in path


def test_links_in_the_place_of_the_trial_s_directories_lead_nowhere(project: Project) -> None:
    assert_links_lead_nowhere(project)


def test_results_may_lie_in_the_project(project: Project) -> None:
    assert_results_may_lie_in_the_project(project)


def test_the_system_s_temporary_directory_is_the_trial_s_own(project: Project) -> None:
    name = f"sandbox-test-{os.getpid()}"
    lines = [f"echo own > {top}/{name} && cat {top}/{name}" for top in ("/tmp", "/var/tmp", "/dev/shm")]
    assert project.output("\n".join(lines)).split() == ["own"] * 3
    assert not any(Path(top, name).exists() for top in ("/tmp", "/var/tmp", "/dev/shm"))


def test_the_kernel_s_settings_cannot_be_written(project: Project) -> None:
    files = "/proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches /proc/sysrq-trigger /sys/kernel/uevent_helper"
    files += " /sys/power/state /sys/fs/cgroup/pids/cgroup.procs /sys/fs/cgroup/cgroup.procs"
    said = project.output(f"for file in {files}; do test -w $file && echo REACHED $file; done; echo end")
    assert said.split() == ["end"]


def test_a_program_inherits_nothing_but_its_streams(project: Project) -> None:
    said = project.output("ls /proc/$$/fd | tr '\\n' ' '; trap; ulimit -c; grep SigIgn /proc/$$/status")
    descriptors = said.split()[:3]
    assert descriptors == ["0", "1", "2"]
    assert f"{0:016x}" in said


def test_there_is_no_way_to_more_rights(project: Project) -> None:
    lines = "umount /home\nmount -t tmpfs x /mnt\nunshare -r umount /home\ngrep CapEff /proc/self/status\nls -A /home"
    said = project.output(lines)
    assert "CapEff:\t0000000000000000" in said
    assert said.splitlines()[-1].startswith("CapEff"), "something was seen below /home"


@pytest.mark.parametrize(("network", "reached"), [("none", False), ("host", True)])
def test_the_network_is_what_was_asked_for(network: str, reached: bool, project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        line = SOCKET.format(python=sys.executable, port=server.getsockname()[1])
        said = project.output(line, "--backend-args", f"network={network}")
    assert ("REACHED" in said) is reached, said


def test_no_interface_but_loopback_exists(project: Project) -> None:
    said = project.output("tail -n +3 /proc/net/dev | cut -d: -f1; tail -n +2 /proc/net/route")
    assert said.split() == ["lo"]


def test_a_fork_bomb_is_stopped_by_its_limit(project: Project) -> None:
    mark = f"sandbox-bomb-{os.getpid()}"
    script = FORK_BOMB.format(python=sys.executable)
    said = project.output(script, "--backend-args", "pids=40", config={"env": {"RUN_MARK": mark}})
    assert "Resource temporarily unavailable" in said
    assert find_marked(None, [("RUN_MARK", mark)]) == []
    assert not list(Path("/sys/fs/cgroup").glob("*/vally-*"))


def test_memory_is_bounded(project: Project) -> None:
    said = project.output(f"{sys.executable} -c 'bytearray(2 * 2**30)' 2>&1; echo end", "--backend-args", "memory=1g")
    assert "MemoryError" in said
    assert said.strip().endswith("end")


@pytest.mark.heavy
def test_an_agent_that_fills_the_disk_is_ended(project: Project) -> None:
    project.write(project.stimulus("head -c 64M /dev/zero > /tmp/big; sleep 600"))
    project.evaluate("--backend-args", "disk-limit=32m")
    (record,) = project.records()
    assert record["errorInfo"]["code"] == "disk-limit"


def test_nothing_outlives_its_trial(project: Project) -> None:
    mark = f"sandbox-{os.getpid()}"
    said = project.output(
        "setsid sleep 600 >/dev/null 2>&1 &\n( ( nohup sleep 600 >/dev/null 2>&1 & ) & )\necho left",
        config={"env": {"RUN_MARK": mark}},
    )
    assert said.strip() == "left"
    assert find_marked(None, [("RUN_MARK", mark)]) == []


@pytest.mark.heavy
def test_nothing_outlives_vally_either(project: Project, tmp_path: Path) -> None:
    mark = f"sandbox-killed-{os.getpid()}"
    project.write(project.stimulus("setsid sleep 600 & sleep 600"), env={"RUN_MARK": mark})
    command = [sys.executable, "-m", "vally", "eval", "-e", "eval.yaml", "--backend", "sandbox", "--output-dir", "out"]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "VALLY_CACHE_DIR": str(tmp_path / "cache")}
    with subprocess.Popen(
        command,
        cwd=project.root,
        env={**env, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as run:
        until(lambda: len(find_marked(None, [("RUN_MARK", mark)])) > 3)
        run.kill()
    until(lambda: not find_marked(None, [("RUN_MARK", mark)]))
    until(lambda: not list(temporary.iterdir()))


def test_graders_see_the_project_and_nothing_of_the_caller_s_secrets(project: Project) -> None:
    project.write(
        project.stimulus(
            "echo hi > w.txt",
            shell_grader(f"grep -q 42 {project.root}/expected.txt && grep -q hi w.txt"),
            shell_grader(f"! touch {project.root}/x"),
            shell_grader('test -z "$JUDGE_KEY" && test -w "$HOME" && test -w "$TMPDIR"'),
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
    assert [grade["passed"] for grade in record["gradeResult"]["details"]] == [True] * 4, record["gradeResult"][
        "details"
    ][-1]


def test_the_user_s_directories_stay_as_they_are(project: Project) -> None:
    project.write(project.stimulus("rm -rf / 2>/dev/null; echo done", shell_grader("rm -rf / 2>/dev/null; true")))
    before = {path.name: path.read_bytes() for path in project.root.iterdir()}
    home = tree_digest(project.outside)
    project.evaluate()
    after = {path.name: path.read_bytes() for path in project.root.iterdir() if path.is_file()}
    assert (after, tree_digest(project.outside)) == (before, home)


def test_records_are_those_of_local(project: Project) -> None:
    project.write(
        *(project.stimulus(line, shell_grader(check), name=name) for name, (line, check) in SAME.items()), timeout="2s"
    )
    seen = []
    for backend in ("local", "sandbox"):
        project.evaluate(backend=backend)
        seen.append(sorted((timeless(record) for record in project.records()), key=json.dumps))
    assert seen[0] == seen[1]


def test_a_program_that_does_not_exist_is_told_as_on_local(project: Project) -> None:
    project.write(project.stimulus("x"), command=["no-such-agent"])
    seen = []
    for backend in ("local", "sandbox"):
        project.evaluate(backend=backend)
        seen.append([record["errorInfo"] for record in project.records()])
    assert seen[0] == seen[1]


def test_a_missing_bwrap_is_one_line_before_anything_starts(project: Project, tmp_path: Path) -> None:
    project.write(project.stimulus("echo hi"))
    empty = tmp_path / "bin"
    empty.mkdir()
    result = project.evaluate(env={"PATH": str(empty)})
    assert result.exit_code != 0
    assert "error: --backend sandbox: bwrap was not found on PATH [sandbox-unavailable]" in result.stderr
    assert "install the package 'bubblewrap', or use --backend local or container" in result.stderr
    assert not (project.root / "out").exists()


def test_a_bwrap_that_fails_says_why(project: Project, tmp_path: Path) -> None:
    project.write(project.stimulus("echo hi"))
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (folder / "bwrap").chmod(0o755)
    result = project.evaluate(env={"PATH": f"{folder}:{os.environ['PATH']}"})
    assert "bwrap: No permissions to create new namespace [sandbox-unavailable]" in result.stderr
    assert "user namespaces" in result.stderr
    assert not (project.root / "out").exists()


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("grade-network=model", "'grade-network' cannot be 'model'"),
        ("setup-network=model", "use 'none' or 'host'"),
        ("network=moon", "network"),
        ("pids=0", "a number of processes"),
        ("memory=lots", "a size such as"),
        ("memory=1m", "at least 64m"),
        ("ro=here", "an absolute path"),
        ("hide=/no/such/path", "does not exist"),
        ("rw=/", "root directory"),
        ("netwerk=none", "network"),
    ],
)
def test_wrong_arguments_are_told(argument: str, message: str, project: Project) -> None:
    project.write(project.stimulus("echo hi"))
    result = project.evaluate("--backend-args", argument)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (project.root / "out").exists()


def test_further_paths_are_shown_written_and_hidden(project: Project, tmp_path: Path) -> None:
    for name in ("read", "written", "concealed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(name)
    words = [f"ro={tmp_path}/read", f"rw={tmp_path}/written", "hide=/usr/share", f"ro={tmp_path}/concealed"]
    words.append(f"hide={tmp_path}/concealed/f")
    script = f"cat {tmp_path}/*/f; echo x > {tmp_path}/written/new; echo x > {tmp_path}/read/new; ls -A /usr/share"
    said = project.output(script, *(part for word in words for part in ("--backend-args", word)))
    assert "readwritten" in said
    assert (tmp_path / "written" / "new").exists()
    assert not (tmp_path / "read" / "new").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_an_ordinary_user_is_confined_too(project: Project) -> None:
    script = (
        f"cat {project.root}/expected.txt; touch /usr/x /var/x {project.outside}/x; id -u; echo x > w.txt; kill -9 $$"
    )
    bomb = "for number in $(seq 100); do sleep 60 & done; echo survived"
    made = {"type": "file-exists", "config": {"path": "w.txt"}}
    project.write(
        project.stimulus(script, made), project.stimulus(bomb, name="bomb"), successExitCodes=[0, 2, 137, 254]
    )
    # pytest's directories are root's own.
    root = Path("/var/tmp") / f"vally-nobody-{os.getpid()}"
    shutil.copytree(project.root, root)
    try:
        for path in (root, *root.iterdir()):
            os.chown(path, 65534, 65534)
        words = ["eval", "-e", "eval.yaml", "--backend", "sandbox", "--backend-args", "pids=40", "--output-dir", "out"]
        done = as_nobody(words, root)
        records = records_of(root)[:-1] if (root / "out").is_dir() else []
    finally:
        shutil.rmtree(root)
    assert records, done.stderr
    by_name = {record["stimulus"]: record for record in records}
    said = by_name["s"]["trajectory"]["output"]
    assert EXPECTED not in said
    assert "65534" in said
    assert by_name["s"]["gradeResult"]["passed"], by_name["s"]["gradeResult"]
    assert "survived" not in json.dumps(by_name["bomb"]["trajectory"]["events"][1:])
    assert "annot fork" in json.dumps(by_name["bomb"])
