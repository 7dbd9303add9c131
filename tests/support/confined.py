"""Agents that try to get out of where a backend confines them, and what a project has to hide from them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from containers import Engine, podman
from programs import records_of, until

from vally.processes import find_marked
from vally.testing import CliResult, run_cli

MARKS = {
    "sandbox": [
        pytest.mark.heavy,
        pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
    ],
    "container": [pytest.mark.heavy, pytest.mark.xdist_group("containers")],
}
CONFINING = [pytest.param(name, marks=marks) for name, marks in MARKS.items()]
"""The backends that confine agents, as parameters."""
EXPECTED = "the expected answer is 42"
JUDGE_KEY = "canary-41c7-judge-key"


class Project:
    """A project with secrets, and runs on a backend of agents that are shell scripts.

    `words` and `env` belong to every run on that backend; `left` lists what is left of all runs outside of vally.
    """

    def __init__(
        self, root: Path, backend: str, words: Sequence[str] = (), env: Mapping[str, str] | None = None
    ) -> None:
        self.backend = backend
        self.words = list(words)
        self._env = dict(env or {})
        self.left: Callable[[], Sequence[str]] = list
        self.root = root / "project"
        self.outside = root / "outside"
        self.home, self.tmp, self.cache = root / "home", root / "tmp", root / "cache"
        for path in (self.root, self.outside, self.home, self.tmp):
            path.mkdir()
        (self.root / "expected.txt").write_text(EXPECTED)

    def stimulus(self, script: str, *graders: Mapping[str, Any], name: str = "s", **keys: Any) -> dict[str, Any]:
        return {"name": name, "prompt": script, "graders": list(graders), **keys}

    def write(self, *stimuli: Mapping[str, Any], timeout: str = "60s", **config: Any) -> None:
        chosen = {"command": ["/bin/sh", "-c", "sh -s 2>&1"], **config}
        defaults = {"executor": {"name": "command", "config": chosen}, "timeout": timeout}
        spec = {"name": "e", "defaults": defaults, "stimuli": list(stimuli)}
        (self.root / "eval.yaml").write_text(json.dumps(spec))

    def arguments(self, *words: str, backend: str | None = None) -> list[str]:
        """The words of a run."""
        always = self.words if backend is None else []
        chosen = ["--backend", backend or self.backend, *always]
        return ["eval", "-e", "eval.yaml", *chosen, "--output-dir", "out", *words]

    def evaluate(self, *words: str, backend: str | None = None, env: Mapping[str, str] | None = None) -> CliResult:
        shutil.rmtree(self.root / "out", ignore_errors=True)
        result = run_cli(self.arguments(*words, backend=backend), cwd=self.root, env={**self._env, **(env or {})})
        assert "Traceback" not in result.stderr
        return result

    def start(self, script: str, mark: str) -> subprocess.Popen[bytes]:
        """A run in a process of its own, whose agent has begun to wait and leaves something in the background."""
        self.write(self.stimulus(f"setsid sleep 600 & {script}"), env={"RUN_MARK": mark})
        own = {"HOME": str(self.home), "TMPDIR": str(self.tmp), "VALLY_CACHE_DIR": str(self.cache)}
        run = subprocess.Popen(
            [sys.executable, "-m", "vally", *self.arguments()],
            cwd=self.root,
            env={"PATH": os.environ["PATH"], **own, **self._env},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        until(lambda: len(find_marked(None, [("RUN_MARK", mark)])) > 3)
        return run

    def records(self) -> list[dict[str, Any]]:
        return records_of(self.root)[:-1]

    def output(
        self,
        script: str,
        *words: str,
        env: Mapping[str, str] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> str:
        """What one agent says."""
        self.write(self.stimulus(script), **(config or {}))
        self.evaluate(*words, env=env)
        (record,) = self.records()
        assert record["backend"] == self.backend
        assert record["status"] == "success", record.get("errorInfo")
        return str(record["trajectory"]["output"])


def args(*values: str) -> list[str]:
    """Arguments of a backend as options of the command line."""
    return [word for value in values for word in ("--backend-args", value)]


@contextlib.contextmanager
def confined_project(backend: str, root: Path) -> Iterator[Project]:
    """A project whose agents are confined by `sandbox` or `container`; nothing may be left of them afterwards."""
    made = Project(root, backend) if backend == "sandbox" else _in_containers(root, backend, podman())
    yield made
    assert list(made.outside.iterdir()) == []
    assert not made.left()


def _in_containers(root: Path, backend: str, engine: Engine) -> Project:
    # Other test processes use the same storage.
    label = f"vally.test={os.getpid()}"
    made = Project(root, backend, [*engine.words, *args(f"engine-arg=--label={label}")], engine.env)
    made.left = lambda: engine.containers(label)
    return made


def shell_grader(line: str) -> dict[str, Any]:
    return {"type": "run-command", "config": {"command": "sh", "args": ["-c", line]}}


READS = {
    "spec": "cat {root}/eval.yaml",
    "expected": "cat {root}/expected.txt",
    "project": "ls -A {root} | grep .",
    "expected-by-process": "cat /proc/1/root{root}/expected.txt",
    "home": "cat {home}/.netrc",
    "password-hashes": "cat /etc/shadow /etc/shadow- | grep .",
    "host-keys": "ls /etc/ssh | grep .",
    "results": "ls -d {root}/out",
    "cache": "ls {cache} | grep .",
    "environment-of-vally": "cat /proc/*/environ | tr '\\0' '\\n' | grep canary",
    "command-line-of-vally": "cat /proc/*/cmdline | tr '\\0' ' ' | grep '[e]val.yaml'",
    "other-trials": "ls -d {tmp}/vally-*-other",
    "root-of-this-machine": "ls -d /proc/*/root{root}",
    "socket-of-an-engine": "ls -d /run/docker.sock /run/podman/* /var/run/docker.sock",
    "disks": "ls /dev/vd* /dev/sd* /dev/nvme* /dev/mem | grep .",
    "record-of-the-beginning": "ls -A $HOME/../git | grep .",
}


REPLACES = """\
cd $(dirname $HOME)
for directory in $(find . -mindepth 1 -depth -type d); do
    mv $directory $directory.old && ln -s {outside} $directory
done
for name in assets mcp.json prompt-1.txt usage-1.json; do ln -s {outside}/$name $name; done
"""
"""Puts links to a directory of this machine in the place of everything that a trial has for itself."""
LOOKS = "for place in /tmp /var/tmp /dev/shm $HOME $TMPDIR; do cat $place/canary; echo x > $place/$1; done 2>/dev/null"


SOCKET = """{python} - <<'END'
import socket
try:
    socket.create_connection(("127.0.0.1", {port}), 5)
    print("REACHED")
except OSError as error:
    print(error)
END
tail -n +3 /proc/net/dev | cut -d: -f1; tail -n +2 /proc/net/route"""


FORK_BOMB = """{python} - <<'END'
import os, time
try:
    while True:
        if os.fork() == 0:
            time.sleep(600)
except OSError as error:
    print(error.strerror, flush=True)
END"""


SAME = {
    "says": ("echo hello; echo x > made.txt", "test -e made.txt"),
    "fails": ("echo oops; exit 3", "exit 4"),
    "is-killed": ("echo oops; kill -9 $$", "kill -SEGV $$"),
    "exits-like-a-signal": ("exit 137", "exit 143"),
    "takes-too-long": ("trap 'echo asked to end; exit 0' TERM; sleep 60 & wait", "true"),
    "reads-input": ("wc -c; cat", "cat | wc -c"),
}


VOLATILE = {
    "backend", "startedAt", "completedAt", "timestamp", "trialId", "id", "runId", "workDir", "phases", "durationMs",
    "wallTimeMs", "sessionID", "trajectoryId",
}  # fmt: skip


def timeless(value: Any) -> Any:
    """A record without what differs from run to run."""
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in VOLATILE}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def as_nobody(words: Sequence[str], root: Path) -> subprocess.CompletedProcess[str]:
    """Run the program as a user without rights, by a Python that such a user can start."""
    return as_user(words, root, 65534, 65534, {"HOME": "/nonexistent"})


def as_user(
    words: Sequence[str], root: Path, uid: int, gid: int, env: Mapping[str, str], seconds: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run the program as another user, by a Python that such a user can start; files are made below `root`."""
    python = sys.executable
    own = {"PATH": os.environ["PATH"], "VALLY_CACHE_DIR": str(root / "cache"), "TMPDIR": str(root), **env}
    private = Path.home()
    if Path(python).resolve().is_relative_to(private):
        python = f"/usr/bin/python3.{sys.version_info.minor}"
        if not Path(python).exists():
            pytest.skip("no Python of this version that another user can start")
        own["PYTHONPATH"] = os.pathsep.join(item for item in sys.path if not Path(item).is_relative_to(private))
    return subprocess.run(
        [python, "-m", "vally", *words],
        cwd=root,
        env=own,
        user=uid,
        group=gid,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
