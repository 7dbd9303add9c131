"""Agents that try to get out of their container, and those that only do their work."""

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

import pytest
from confined import (
    EXPECTED,
    FORK_BOMB,
    JUDGE_KEY,
    READS,
    SAME,
    Project,
    as_user,
    assert_links_lead_nowhere,
    assert_results_may_lie_in_the_project,
    shell_grader,
    timeless,
)
from containers import Engine, ordinary_user, podman
from programs import until

from vally.processes import find_marked
from vally.testing import tree_digest
from vally_backend_container.images import DEFAULT_DOCKERFILE

pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("containers")]
PYTHON = "python3"
OF_THE_IMAGE = {"password-hashes", "host-keys"}
"""Attempts at files that belong to the system; that of a container is the image's own."""


@pytest.fixture
def engine() -> Engine:
    return podman()


@pytest.fixture
def project(tmp_path: Path, engine: Engine) -> Iterator[Project]:
    made = Project(tmp_path, "container", engine.words, engine.env)
    yield made
    assert list(made.outside.iterdir()) == []
    assert containers_of(engine) == []


def containers_of(engine: Engine) -> list[str]:
    """Those that trials of this test process have; other processes use the same storage."""
    return engine.containers(f"vally.test={os.getpid()}")


def arg(*values: str) -> list[str]:
    return [word for value in values for word in ("--backend-args", value)]


@pytest.fixture(autouse=True)
def _labelled(project: Project) -> None:
    project.words += arg(f"engine-arg=--label=vally.test={os.getpid()}")


def outputs(project: Project) -> dict[str, str]:
    found = {record["stimulus"]: record for record in project.records()}
    for record in found.values():
        assert record["status"] == "success", record.get("errorInfo")
        assert record["backend"] == "container"
    return {name: record["trajectory"]["output"] for name, record in found.items()}


def test_what_is_hidden_cannot_be_read(project: Project, tmp_path: Path) -> None:
    places = {"root": project.root, "home": tmp_path / "home", "cache": tmp_path / "cache", "tmp": tmp_path / "tmp"}
    for name in ("home", "tmp"):
        places[name].mkdir()
    (places["home"] / ".netrc").write_text("canary-netrc")
    attempts = {name: line.format(**places) for name, line in READS.items() if name not in OF_THE_IMAGE}
    for name in ("vally-trial-other/home", "vally-run-other/x", "vally-eval-other/x"):
        (places["tmp"] / name).mkdir(parents=True)
    attempts["other-trials"] = f"ls -d {places['tmp']}/vally-*-other"
    attempts["root-of-this-machine"] = f"ls -d /proc/*/root{project.root}"
    attempts["socket-of-the-engine"] = "ls -d /run/docker.sock /run/podman/* /var/run/docker.sock"
    attempts["disks"] = "ls /dev/vd* /dev/sd* /dev/nvme* /dev/mem | grep ."
    attempts["record-of-the-beginning"] = "ls -A $HOME/../git | grep ."
    lines = {name: f"( {line} ) 2>/dev/null && echo REACHED || echo stopped" for name, line in attempts.items()}
    changed = {"type": "diff-empty"}
    project.write(*(project.stimulus(line, changed, name=name) for name, line in lines.items()))
    env = {"HOME": str(places["home"]), "VALLY_CACHE_DIR": str(places["cache"]), "TMPDIR": str(places["tmp"])}
    project.evaluate(env={**env, "JUDGE_KEY": JUDGE_KEY})
    for name, said in outputs(project).items():
        assert said.strip().endswith("stopped"), (name, said)
        for secret in (EXPECTED, "canary", "run-command"):
            assert secret not in said


def test_no_part_reaches_what_another_is_started_with(project: Project) -> None:
    lines = ["cd $HOME/..", "mv parts moved && echo REACHED", "rm -rf parts/* run/* tmp", "ls -A parts | wc -l"]
    lines += ["for path in parts/* parts/*/* run/*/* git tmp; do rm -rf $path; ln -s / $path; done"]
    grader = project.root / "grader.sh"
    told = '{\\"passed\\": $(test -s $EVALUATE_GRADER_INPUT && echo true), \\"score\\": 1, \\"evidence\\": \\"input\\"}'
    grader.write_text(f'#!/bin/sh\necho "{told}"\n')
    grader.chmod(0o755)
    program = {"type": "program", "config": {"program": str(grader)}}
    look = shell_grader("! ls -d /tmp/usr /var/tmp/usr && touch /tmp/x")
    project.write(project.stimulus("\n".join(f"({line}) 2>/dev/null" for line in lines), look, program, look))
    before = set(Path("/").iterdir())
    project.evaluate()
    (record,) = project.records()
    assert "REACHED" not in record["trajectory"]["output"]
    results = record["gradeResult"]["details"]
    assert [grade["passed"] for grade in results] == [True] * 3, json.dumps(results)
    assert set(Path("/").iterdir()) == before


def test_nothing_outside_can_be_written(project: Project) -> None:
    places = [f"{project.outside}/x", f"{project.root}/x", "/usr/x", "/x", "/etc/passwd", "/home/x"]
    places += ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/fs/cgroup/memory/tasks"]
    lines = [f"(echo x >> {place}) 2>/dev/null && echo REACHED {place}" for place in places]
    assert project.output("\n".join([*lines, "echo end"])).split() == ["end"]
    assert not Path("/x").exists()
    assert not (project.root / "x").exists()


def test_there_is_no_way_to_more_rights(project: Project) -> None:
    lines = ["mount -t tmpfs x /mnt", "umount /tmp", "unshare -r true", "mknod /tmp/disk b 8 0", "chroot / true"]
    said = project.output(
        "\n".join(
            [f"({line}) 2>/dev/null && echo REACHED {line}" for line in lines]
            + ["grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status"]
        )
    )
    assert said.split() == ["CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]


def test_what_is_written_to_temporary_directories_stays_with_the_trial(project: Project) -> None:
    name = f"container-test-{os.getpid()}"
    lines = [f"echo own > {top}/{name} && cat {top}/{name}" for top in ("/tmp", "/var/tmp", "/dev/shm", "$TMPDIR")]
    assert project.output("\n".join(lines)).split() == ["own"] * 4
    assert not any(Path(top, name).exists() for top in ("/tmp", "/var/tmp", "/dev/shm"))


CONNECTING = """{python} - <<'END'
import socket
try:
    socket.create_connection(("127.0.0.1", {port}), 5)
    print("REACHED")
except OSError as error:
    print(error)
END
tail -n +3 /proc/net/dev | cut -d: -f1"""


def test_links_in_the_place_of_the_trial_s_directories_lead_nowhere(project: Project) -> None:
    assert_links_lead_nowhere(project)


def test_results_may_lie_in_the_project(project: Project) -> None:
    assert_results_may_lie_in_the_project(project)


@pytest.mark.parametrize(("network", "reached"), [("none", False), ("model", False), ("host", True)])
def test_the_network_is_what_was_asked_for(network: str, reached: bool, project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        line = CONNECTING.format(python=PYTHON, port=server.getsockname()[1])
        said = project.output(line, *arg(f"network={network}"))
    assert ("REACHED" in said) is reached, said
    assert reached or said.split()[-1] == "lo"


def test_a_network_by_its_name(project: Project, engine: Engine) -> None:
    name = f"vally-test-{os.getpid()}"
    engine.run("network", "create", "--internal", name)
    try:
        said = project.output("tail -n +3 /proc/net/dev | cut -d: -f1", *arg(f"network={name}"))
    finally:
        engine.run("network", "rm", "--force", name)
    assert sorted(said.split()) == ["eth0", "lo"]


def test_a_network_that_does_not_exist_is_told(project: Project) -> None:
    project.write(project.stimulus("echo hi"))
    project.evaluate(*arg("network=no-such-network"))
    (record,) = project.records()
    assert record["errorInfo"]["code"] == "agent-start-failed"
    assert "no-such-network" in record["errorInfo"]["message"]


def test_a_fork_bomb_is_stopped_by_its_limit_and_told(project: Project) -> None:
    mark = f"container-bomb-{os.getpid()}"
    project.write(project.stimulus(FORK_BOMB.format(python=PYTHON)), env={"RUN_MARK": mark})
    project.evaluate(*arg("pids=40"))
    (record,) = project.records()
    assert "Resource temporarily unavailable" in record["trajectory"]["output"]
    assert any("its limit of 40 processes was reached" in line for line in record["warnings"])
    assert find_marked(None, [("RUN_MARK", mark)]) == []


def test_an_agent_whose_memory_was_full_is_told_as_such(project: Project) -> None:
    project.write(project.stimulus(f"exec {PYTHON} -c 'bytearray(2**29)'"), command=["/bin/sh", "-s"])
    project.evaluate(*arg("memory=128m"))
    (record,) = project.records()
    assert "its memory limit of 128 MiB was reached" in json.dumps(record)
    assert "SIGKILL" in json.dumps(record)


def test_an_agent_that_fills_the_disk_is_ended(project: Project) -> None:
    project.write(project.stimulus("head -c 64M /dev/zero > /tmp/big; sleep 600"))
    project.evaluate(*arg("disk-limit=32m"))
    (record,) = project.records()
    assert record["errorInfo"]["code"] == "disk-limit"


def test_all_that_can_be_written_on_a_disk_counts_as_the_trial_s(project: Project) -> None:
    said = project.output(
        "grep -E ' (ext|xfs|btrfs|overlay|9p|virtiofs|fuse)[^ ]* rw' /proc/mounts; echo; echo $HOME $PWD"
    )
    *mounts, places = said.splitlines()
    home, workspace = places.split()
    targets = {line.split()[1] for line in mounts if line}
    private = str(Path(home).parent)
    (told,) = targets - {"/tmp", "/var/tmp", private, workspace}
    assert told.startswith(f"{private}-aside/")


def test_nothing_outlives_its_trial(project: Project) -> None:
    mark = f"container-{os.getpid()}"
    said = project.output(
        "setsid sleep 600 >/dev/null 2>&1 &\n( ( nohup sleep 600 >/dev/null 2>&1 & ) & )\necho left",
        config={"env": {"RUN_MARK": mark}},
    )
    assert said.strip() == "left"
    assert find_marked(None, [("RUN_MARK", mark)]) == []


def started(project: Project, engine: Engine, tmp_path: Path, mark: str) -> subprocess.Popen[bytes]:
    """A run in a process of its own whose agent waits."""
    project.write(project.stimulus("setsid sleep 600 & sleep 600"), env={"RUN_MARK": mark})
    command = [sys.executable, "-m", "vally", *project.arguments()]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "VALLY_CACHE_DIR": str(tmp_path / "cache"), **engine.env}
    env["TMPDIR"] = str(temporary)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run = subprocess.Popen(command, cwd=project.root, env=env, start_new_session=True, **quiet)
    until(lambda: len(find_marked(None, [("RUN_MARK", mark)])) > 2)
    assert len(containers_of(engine)) == 1
    return run


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_vally(how: signal.Signals, project: Project, engine: Engine, tmp_path: Path) -> None:
    mark = f"container-killed-{os.getpid()}"
    run = started(project, engine, tmp_path, mark)
    run.send_signal(how)
    run.wait()
    until(lambda: not find_marked(None, [("RUN_MARK", mark)]))
    until(lambda: not containers_of(engine))
    until(lambda: not list((tmp_path / "temporary").iterdir()))


def test_a_container_that_is_removed_meanwhile(project: Project, engine: Engine, tmp_path: Path) -> None:
    mark = f"container-removed-{os.getpid()}"
    run = started(project, engine, tmp_path, mark)
    engine.run("rm", "--force", "--time", "0", *containers_of(engine))
    assert run.wait(60) == 1
    (record,) = project.records()
    assert record["status"] == "error" or record["trajectory"]["endReason"] == "error", record


def test_what_a_program_says_arrives_whether_or_not_it_reads_its_input(project: Project) -> None:
    says = {"type": "output-contains", "config": {"substring": "said"}}
    stimuli = [project.stimulus("unread " * 20_000, says, name=f"s{number}") for number in range(10)]
    project.write(*stimuli, command=["/bin/sh", "-c", "head -c 1 >/dev/null; echo said"])
    project.evaluate()
    assert [record["trajectory"]["output"].strip() for record in project.records()] == ["said"] * 10


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


def test_graders_see_the_project_and_nothing_of_the_caller_s_secrets(project: Project) -> None:
    project.write(
        project.stimulus(
            "echo hi > w.txt",
            shell_grader(f"grep -q 42 {project.root}/expected.txt && grep -q hi w.txt"),
            shell_grader(f"! touch {project.root}/x"),
            shell_grader(f"! ls {project.root}/out/*/*"),
            shell_grader('test -z "$JUDGE_KEY" && test -w "$HOME" && test -w "$TMPDIR"'),
            shell_grader("! ls /sys/class/net/eth0"),
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


def test_set_up_has_a_container_of_its_own(project: Project) -> None:
    commands = ['test "$TOKEN" = canary-token && hostname > made.txt', "touch /tmp/there", "setsid tail -f /dev/null &"]
    look = "cat made.txt; hostname; ls /tmp/there; cat /proc/[0-9]*/comm | grep tail; env | grep canary; echo end"
    project.write(project.stimulus(look, environment={"commands": commands}))
    project.evaluate(*arg("setup-network=none"), env={"TOKEN": "canary-token"})
    (said,) = outputs(project).values()
    host, other, *rest = said.splitlines()
    assert host != other
    assert rest == ["ls: cannot access '/tmp/there': No such file or directory", "end"]


def test_the_user_s_directories_stay_as_they_are(project: Project) -> None:
    project.write(project.stimulus("rm -rf / 2>/dev/null; echo done", shell_grader("rm -rf / 2>/dev/null; true")))
    before = {path.name: path.read_bytes() for path in project.root.iterdir()}
    home = tree_digest(project.outside)
    project.evaluate()
    after = {path.name: path.read_bytes() for path in project.root.iterdir() if path.is_file()}
    assert (after, tree_digest(project.outside)) == (before, home)


def test_records_are_those_of_local(project: Project) -> None:
    project.write(
        *(project.stimulus(line, shell_grader(check), name=name) for name, (line, check) in SAME.items()), timeout="4s"
    )
    seen = []
    for backend in ("local", None):
        project.evaluate(backend=backend)
        seen.append(sorted((timeless(record) for record in project.records()), key=json.dumps))
    assert seen[0] == seen[1]


def test_a_program_that_does_not_exist_is_told_as_on_local(project: Project) -> None:
    seen = []
    for command in (["no-such-agent"], ["./no-such-agent"], ["/etc/passwd"]):
        project.write(project.stimulus("x"), command=command)
        for backend in ("local", None):
            project.evaluate(backend=backend)
            seen.append([record["errorInfo"] for record in project.records()])
    assert seen[0::2] == seen[1::2]


def test_limits_of_time_end_what_runs_inside(project: Project) -> None:
    stubborn = "trap '' TERM; while :; do tail -f /dev/null; done"
    slow = {"type": "run-command", "config": {"command": "sh", "args": ["-c", stubborn], "timeout": "1s"}}
    after = shell_grader("! ls /proc/[0-9]*/comm | xargs cat 2>/dev/null | grep tail")
    project.write(project.stimulus("echo hi", slow, after))
    project.evaluate()
    (record,) = project.records()
    assert [grade["passed"] for grade in record["gradeResult"]["details"]] == [False, True], record["gradeResult"]


class Shim:
    """A program in the place of podman that tells its calls and hands them on, unless `line` does something else."""

    def __init__(self, directory: Path, line: str = "") -> None:
        directory.mkdir()
        self.log = directory / "log"
        self.path = f"{directory}{os.pathsep}{os.environ['PATH']}"
        shim = directory / "podman"
        shim.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {self.log}\n{line}\nexec {shutil.which("podman")} "$@"\n')
        shim.chmod(0o755)

    def calls(self, word: str) -> list[str]:
        """The calls of one command of the engine."""
        return [line for line in self.log.read_text().splitlines() if line.split()[0] == word]


def test_no_secret_is_an_argument(project: Project, tmp_path: Path) -> None:
    shim = Shim(tmp_path / "bin")
    project.write(
        project.stimulus(
            'test "${AGENT_KEY%-agent}" = canary && echo has it',
            shell_grader('test "${SPEC_KEY%-spec}" = canary'),
            environment={"commands": ['test "${JUDGE_KEY%-judge}" = canary']},
            grading_environment={"env": {"SPEC_KEY": "canary-spec"}},
        ),
        passEnv=["AGENT_KEY"],
    )
    secrets = {"AGENT_KEY": "canary-agent", "JUDGE_KEY": "canary-judge"}
    project.evaluate(env={"PATH": shim.path, **secrets})
    (record,) = project.records()
    assert record["trajectory"]["output"].strip() == "has it"
    assert record["gradeResult"]["passed"], record["gradeResult"]
    assert len(shim.calls("exec")) >= 3
    assert "canary-" not in shim.log.read_text()


def test_an_executor_without_processes_needs_no_container(project: Project, tmp_path: Path) -> None:
    shim = Shim(tmp_path / "bin")
    says = {"type": "output-contains", "config": {"substring": "hi"}}
    spec = {
        "name": "e",
        "defaults": {"executor": "mock"},
        "stimuli": [{"name": "s", "prompt": "hi", "graders": [says]}],
    }
    (project.root / "eval.yaml").write_text(json.dumps(spec))
    assert project.evaluate(env={"PATH": shim.path}).exit_code in (0, 1)
    assert [line for line in shim.calls("run") if "--detach" in line] == []


VALUES = {
    "PLAIN": "plain",
    "QUOTED": """it's "$HOME" `id` \\n""",
    "LINES": "one\ntwo\n\n#three",
    "EMPTY": "",
    "UNICODE": "grüße 🦊",
    "LONG": "x" * 100_000,
}


def test_variables_arrive_as_they_are(project: Project) -> None:
    look = f"{PYTHON} -c 'import json, os; print(json.dumps(dict(os.environ)))'"
    project.write(project.stimulus(look, environment={"env": VALUES}))
    project.evaluate(env={"LANG": "xx_YY.UTF-8", "JAVA_HOME": "/usr/lib/jvm/here"})
    (said,) = outputs(project).values()
    found = json.loads(said)
    assert {name: found.get(name) for name in VALUES} == VALUES
    assert not [name for name in found if name.startswith(("VALLY_IN_", "CONTAINERS_", "PERL"))]
    assert "JAVA_HOME" not in found
    assert found["PATH"].startswith("/usr/local/sbin")


def test_an_image_is_built_once_per_content(project: Project, engine: Engine, tmp_path: Path) -> None:
    shim = Shim(tmp_path / "bin")
    context = project.root / "image"
    context.mkdir()
    (context / "Dockerfile").write_text(f"FROM localhost/{engine.image}\nCOPY note /note\nUSER 1234\n")
    built = set()
    words = [word for word in engine.words if "image=" not in word][1:] if len(engine.words) > 2 else []
    own = Project.__new__(Project)
    own.__dict__.update(project.__dict__)
    own.words = [*words, *arg("dockerfile=image/Dockerfile", f"engine-arg=--label=vally.test={os.getpid()}")]
    try:
        for content in ("one", "one", "two"):
            (context / "note").write_text(content)
            said = own.output("cat /note", env={"PATH": shim.path})
            assert said.strip() == content
            built = {line.split("--tag ")[1].split()[0] for line in shim.calls("build")}
        assert len(shim.calls("build")) == len(built) == 2
        assert all(tag.startswith("vally-task:") for tag in built)
    finally:
        for tag in built:
            engine.run("rmi", "--force", tag)


FAILURES = {
    "does-not-start": ('case "$*" in run\\ --detach*) echo "Error: no space" >&2; exit 125 ;; esac', "Error: no space"),
    "hangs": ('case "$*" in run\\ --detach*) exec sleep 600 ;; esac', "did not end within 8 s (startup-timeout)"),
    "does-not-enter": ('[ "$1" = exec ] && { echo "Error: no such container" >&2; exit 126; }', "no such container"),
    "enters-and-hangs": ('[ "$1" = exec ] && exec sleep 600', "no answer within 8 s"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_an_engine_that_fails_in_a_trial_is_told(failure: str, project: Project, tmp_path: Path) -> None:
    line, message = FAILURES[failure]
    shim = Shim(tmp_path / "bin", line)
    project.write(project.stimulus("echo hi"))
    # Long enough for the proof that containers can be started at all.
    project.evaluate(*arg("startup-timeout=8s"), env={"PATH": shim.path})
    (record,) = project.records()
    assert record["errorInfo"]["code"] == "agent-start-failed"
    assert record["errorInfo"]["retryable"]
    assert message in record["errorInfo"]["message"]


def test_the_image_that_comes_with_the_backend(project: Project, engine: Engine) -> None:
    base = f"localhost/{DEFAULT_DOCKERFILE.read_text().split('FROM ')[1].split()[0]}"
    project.words = [word for word in project.words if "image=" not in word][1:]
    engine.run("tag", engine.image, base)
    tag = ""
    try:
        said = project.output("git --version; node --version; python3 --version; rg --version; curl --version")
        manifest = json.loads(next(project.root.glob("out/*/run-manifest.json")).read_text())
        tag = manifest["backend"]["image"]
        assert tag.startswith("vally-task:")
        assert manifest["backend"]["imageDigest"].startswith("sha256:")
    finally:
        engine.run("rmi", "--force", base, *([tag] if tag else []))
    for name in ("git version", "v", "Python 3", "ripgrep", "curl"):
        assert any(line.startswith(name) for line in said.splitlines()), said


def test_a_missing_engine_is_one_line_before_anything_starts(project: Project, tmp_path: Path) -> None:
    project.write(project.stimulus("echo hi"))
    empty = tmp_path / "bin"
    empty.mkdir()
    result = project.evaluate(env={"PATH": str(empty)})
    assert result.exit_code != 0
    assert "error: --backend container: neither podman nor docker answers [container-unavailable]" in result.stderr
    for line in ("podman: was not found on PATH", "docker: was not found on PATH", "install the package 'podman'"):
        assert line in result.stderr
    assert not (project.root / "out").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can own files of another user")
def test_files_of_another_user_come_back(project: Project) -> None:
    made = [
        {"type": "file-contains", "config": {"path": "dir/made.txt", "value": "1234"}},
        shell_grader("id -u | grep 1234"),
    ]
    project.write(project.stimulus("mkdir -m 700 dir && id -u > dir/made.txt && chmod 600 dir/made.txt", *made))
    kept = project.root.parent / "kept"
    project.evaluate(*arg("user=1234:1234"), "--workspace", str(kept))
    (record,) = project.records()
    assert record["gradeResult"]["passed"], record["gradeResult"]
    assert {path.lstat().st_uid for path in kept.rglob("*")} == {os.geteuid()}


WRONG: Mapping[str, str] = {
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
}


@pytest.mark.parametrize("argument", WRONG)
def test_wrong_arguments_are_told(argument: str, project: Project) -> None:
    project.write(project.stimulus("echo hi"))
    result = project.evaluate(*arg(argument))
    assert result.exit_code == 2
    assert WRONG[argument] in result.stderr
    assert not (project.root / "out").exists()


UNUSABLE: Mapping[str, str] = {
    "image=no-such-image": "there is no image 'no-such-image', and 'pull=never' forbids to fetch it",
    "runtime=no-such-runtime": "no-such-runtime",
    "engine-arg=--no-such-option": "no-such-option",
}


@pytest.mark.parametrize("argument", UNUSABLE)
def test_what_no_trial_could_start_with_is_told_before_anything_starts(argument: str, project: Project) -> None:
    project.write(project.stimulus("echo hi"))
    if argument.startswith("image="):
        project.words = [word for word in project.words if "image=" not in word]
        project.words = arg(*(word for word in project.words if word != "--backend-args"), "pull=never")
    result = project.evaluate(*arg(argument))
    assert result.exit_code == 1
    assert UNUSABLE[argument] in result.stderr
    assert "[container-unavailable]" in result.stderr
    assert not (project.root / "out").exists()


def test_an_ordinary_user_needs_no_root(tmp_path: Path) -> None:
    with ordinary_user() as user:
        root = user.home / "work"
        root.mkdir()
        made = Project(root, "podman", user.engine.words)
        look = f"cat {made.root}/expected.txt; id -u; id -g; echo x > w.txt; ls -n w.txt | cut -d' ' -f3"
        mine = shell_grader(f"test $(stat -c %u w.txt) = {user.uid} && grep -q 42 {made.root}/expected.txt")
        other = made.stimulus(look, mine, name="s", environment={"commands": ["id -u > set-up.txt"]})
        made.write(other)
        for path in (root, *root.rglob("*")):
            os.chown(path, user.uid, user.gid)
        words = made.arguments("--workspace", str(root / "kept"))
        results = {}
        for name, more in (("own", []), ("other", arg("user=1234:1234"))):
            shutil.rmtree(root / "kept", ignore_errors=True)
            shutil.rmtree(made.root / "out", ignore_errors=True)
            done = as_user([*words, *more], made.root, user.uid, user.gid, user.engine.env, 120)
            assert (made.root / "out").is_dir(), done.stderr
            (results[name],) = made.records()
            assert {path.lstat().st_uid for path in (root / "kept").rglob("*")} == {user.uid}
    for name, ids in (("own", [user.uid, user.gid, user.uid]), ("other", [1234, 1234, 1234])):
        record = results[name]
        assert [int(word) for word in record["trajectory"]["output"].split()[-3:]] == ids, record
        assert EXPECTED not in json.dumps(record["trajectory"]["events"])
    assert results["own"]["gradeResult"]["passed"], json.dumps(results["own"]["gradeResult"])
