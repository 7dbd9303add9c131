"""What only containers have; see `test_confined` for what they share with other backends."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confined import EXPECTED, Project, args, as_user, confined_project, shell_grader
from containers import Engine, ordinary_user, podman

from vally_backend_container.images import DEFAULT_DOCKERFILE

pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("containers")]


@pytest.fixture
def engine() -> Engine:
    return podman()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with confined_project("container", tmp_path) as made:
        yield made


def without_image(project: Project) -> list[str]:
    """The words of a run without those that name an image."""
    return args(*(word for word in project.words if word != "--backend-args" and not word.startswith("image=")))


def outputs(project: Project) -> dict[str, str]:
    found = {record["stimulus"]: record for record in project.records()}
    for record in found.values():
        assert record["status"] == "success", record.get("errorInfo")
        assert record["backend"] == "container"
    return {name: record["trajectory"]["output"] for name, record in found.items()}


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


def test_there_is_no_way_to_more_rights(project: Project) -> None:
    lines = ["mount -t tmpfs x /mnt", "umount /tmp", "unshare -r true", "mknod /tmp/disk b 8 0", "chroot / true"]
    said = project.output(
        "\n".join(
            [f"({line}) 2>/dev/null && echo REACHED {line}" for line in lines]
            + ["grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status"]
        )
    )
    assert said.split() == ["CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]


def test_a_network_by_its_name(project: Project, engine: Engine) -> None:
    name = f"vally-test-{os.getpid()}"
    engine.run("network", "create", "--internal", name)
    try:
        said = project.output("tail -n +3 /proc/net/dev | cut -d: -f1", *args(f"network={name}"))
    finally:
        engine.run("network", "rm", "--force", name)
    assert sorted(said.split()) == ["eth0", "lo"]


def test_a_network_that_does_not_exist_is_told(project: Project) -> None:
    project.write(project.stimulus("echo hi"))
    result = project.evaluate(*args("network=no-such-network"))
    assert result.exit_code == 1
    assert "has no network 'no-such-network'" in result.stderr
    assert "networks: " in result.stderr
    assert not (project.root / "out").exists()


def test_an_agent_whose_memory_was_full_is_told_as_such(project: Project) -> None:
    project.write(project.stimulus("exec python3 -c 'bytearray(2**29)'"), command=["/bin/sh", "-s"])
    project.evaluate(*args("memory=128m"))
    (record,) = project.records()
    assert "its memory limit of 128 MiB was reached" in json.dumps(record)
    assert "SIGKILL" in json.dumps(record)


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


def test_a_container_that_is_removed_meanwhile(project: Project, engine: Engine) -> None:
    run = project.start("sleep 600", f"container-removed-{os.getpid()}")
    (container,) = project.left()
    engine.run("rm", "--force", "--time", "0", container)
    assert run.wait(60) == 1
    (record,) = project.records()
    assert record["status"] == "error" or record["trajectory"]["endReason"] == "error", record


def test_set_up_has_a_container_of_its_own(project: Project) -> None:
    commands = ['test "$TOKEN" = canary-token && hostname > made.txt', "touch /tmp/there", "setsid tail -f /dev/null &"]
    look = "cat made.txt; hostname; ls /tmp/there; cat /proc/[0-9]*/comm | grep tail; env | grep canary; echo end"
    project.write(project.stimulus(look, environment={"commands": commands}))
    project.evaluate(*args("setup-network=none"), env={"TOKEN": "canary-token"})
    (said,) = outputs(project).values()
    host, other, *rest = said.splitlines()
    assert host != other
    assert rest == ["ls: cannot access '/tmp/there': No such file or directory", "end"]


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
    look = "python3 -c 'import json, os; print(json.dumps(dict(os.environ)))'"
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
    project.words = [*without_image(project), *args("dockerfile=image/Dockerfile")]
    try:
        for content in ("one", "one", "two"):
            (context / "note").write_text(content)
            said = project.output("cat /note", env={"PATH": shim.path})
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
    project.evaluate(*args("startup-timeout=8s"), env={"PATH": shim.path})
    (record,) = project.records()
    assert record["errorInfo"]["code"] == "agent-start-failed"
    assert record["errorInfo"]["retryable"]
    assert message in record["errorInfo"]["message"]


def test_the_image_that_comes_with_the_backend(project: Project, engine: Engine) -> None:
    base = f"localhost/{DEFAULT_DOCKERFILE.read_text().split('FROM ')[1].split()[0]}"
    project.words = without_image(project)
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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can own files of another user")
def test_files_of_another_user_come_back(project: Project) -> None:
    made = [
        {"type": "file-contains", "config": {"path": "dir/made.txt", "value": "1234"}},
        shell_grader("id -u | grep 1234"),
    ]
    project.write(project.stimulus("mkdir -m 700 dir && id -u > dir/made.txt && chmod 600 dir/made.txt", *made))
    kept = project.root.parent / "kept"
    project.evaluate(*args("user=1234:1234"), "--workspace", str(kept))
    (record,) = project.records()
    assert record["gradeResult"]["passed"], record["gradeResult"]
    assert {path.lstat().st_uid for path in kept.rglob("*")} == {os.geteuid()}


UNUSABLE: Mapping[str, str] = {
    "image=no-such-image": "there is no image 'no-such-image', and 'pull=never' forbids to fetch it",
    "runtime=no-such-runtime": "no-such-runtime",
    "engine-arg=--no-such-option": "no-such-option",
}


@pytest.mark.parametrize("argument", UNUSABLE)
def test_what_no_trial_could_start_with_is_told_before_anything_starts(argument: str, project: Project) -> None:
    project.write(project.stimulus("echo hi"))
    if argument.startswith("image="):
        project.words = [*without_image(project), *args("pull=never")]
    result = project.evaluate(*args(argument))
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
        for name, more in (("own", []), ("other", args("user=1234:1234"))):
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
