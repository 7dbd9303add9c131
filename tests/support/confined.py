"""Agents that try to get out of where a backend confines them, and what a project has to hide from them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from programs import records_of

from vally.testing import CliResult, run_cli

EXPECTED = "the expected answer is 42"
JUDGE_KEY = "canary-41c7-judge-key"


class Project:
    """A project with secrets, and runs on a backend of agents that are shell scripts.

    `words` and `env` belong to every run on that backend.
    """

    def __init__(
        self, root: Path, backend: str, words: Sequence[str] = (), env: Mapping[str, str] | None = None
    ) -> None:
        self.backend = backend
        self.words = list(words)
        self._env = dict(env or {})
        self.root = root / "project"
        self.outside = root / "outside"
        for path in (self.root, self.outside):
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
    "other-trials": "ls -d {tmp}/vally-trial-*/home {tmp}/vally-run-*/* | grep -v $(basename $(dirname $HOME))",
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


def assert_links_lead_nowhere(project: Project) -> None:
    """What an agent puts in the place of its directories is followed by nobody who could reach more than the agent."""
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


def assert_results_may_lie_in_the_project(project: Project) -> None:
    """What is kept of a trial before it is graded is no obstacle for graders, and they cannot see it."""
    look = f"cat made.txt {project.root}/expected.txt && ! find {project.root}/out -type f | grep ."
    kept = {"type": "diff-contains", "config": {"value": "made.txt"}}
    project.write(project.stimulus("echo hello > made.txt", kept, shell_grader(look)))
    project.evaluate()
    (record,) = project.records()
    assert record["gradeResult"]["passed"], record["gradeResult"]
    (patch,) = (project.root / "out").rglob("workspace.patch")
    assert "made.txt" in patch.read_text()


SOCKET = """{python} - <<'END'
import socket
try:
    socket.create_connection(("127.0.0.1", {port}), 5)
    print("REACHED")
except OSError as error:
    print(error)
END"""


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
