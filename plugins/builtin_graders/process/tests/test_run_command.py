"""`run-command`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from vally import ConfigInvalid, GraderResult, GraderSpec, PluginHost, Scoring, grade_trajectory, read_eval_spec
from vally.testing import grade, trajectory
from vally_grader_process import plugin

RECORD: GraderSpec = {record.name: record for record in plugin.vally_graders()}["run-command"]


def run(work_dir: Path, config: dict[str, Any], **facts: Any) -> GraderResult:
    return grade(RECORD, config, trajectory(work_dir=str(work_dir)), **facts)


def python(script: str, **config: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-c", script], **config}


def metadata(result: GraderResult) -> dict[str, Any]:
    assert result.metadata is not None
    return result.metadata


if sys.platform != "win32":

    @pytest.fixture
    def path(tmp_path: Path) -> str:
        """A PATH with an `npm` and a `node` that do what their environment says, before the usual directories."""
        directory = tmp_path / "bin"
        directory.mkdir()
        for name in ("npm", "node"):
            (directory / name).write_text('#!/bin/sh\necho "$PRINTS"\nexit "$CODE"\n')
            (directory / name).chmod(0o755)
        return f"{directory}:/usr/bin:/bin"

    @pytest.mark.parametrize(
        ("config", "code", "passed", "evidence"),
        [
            pytest.param(
                {"command": "npm test"}, 0, True, "Command 'npm test' exited with code 0 (expected 0)", id="RC-1"
            ),
            pytest.param(
                {"command": "npm test"}, 1, False, "Command 'npm test' exited with code 1 (expected 0)", id="RC-2"
            ),
            pytest.param(
                {"command": "node", "args": ["v.js", "--strict"], "stdout_contains": "OK"},
                0,
                False,
                "Command 'node v.js --strict' exited with code 0 (expected 0); stdout does not contain 'OK'",
                id="RC-3",
            ),
            pytest.param(
                {"command": "exit 3", "expected_exit_code": 3},
                0,
                True,
                "Command 'exit 3' exited with code 3 (expected 3)",
                id="RC-4",
            ),
            pytest.param(
                {"command": "sleep 60", "timeout": "1s"}, 0, False, "Command 'sleep 60' timed out after 1s", id="RC-5"
            ),
            pytest.param(
                {"command": "nope-xyz", "args": []},
                0,
                False,
                "Failed to start command 'nope-xyz': ENOENT (spawn)",
                id="RC-6",
            ),
            pytest.param(
                {"command": "echo warn", "stdout_not_matches": ["(?i)WARN", "err"]},
                0,
                False,
                "Command 'echo warn' exited with code 0 (expected 0); stdout matches disallowed pattern /(?i)WARN/",
                id="RC-7",
            ),
            pytest.param(
                {"command": "ls", "sub_path": "src\\app"},
                0,
                False,
                "Working directory 'src\\app' does not exist in the workspace",
                id="RC-8",
            ),
            pytest.param(
                {"command": "kill -SEGV $$"},
                0,
                False,
                "Command 'kill -SEGV $$' was terminated by signal SIGSEGV (expected exit code 0)",
                id="signal",
            ),
            pytest.param(
                {"command": "./missing", "args": []},
                0,
                False,
                "Failed to start command './missing': ENOENT (spawn)",
                id="relative program",
            ),
            pytest.param(
                {
                    "command": "echo a; echo b >&2; exit 4",
                    "stdout_contains": ["a", "x"],
                    "stderr_contains": "y",
                    "stdout_matches": ["^a$", "(?m)^a$", "q"],
                    "stdout_not_matches": "a",
                },
                0,
                False,
                "Command 'echo a; echo b >&2; exit 4' exited with code 4 (expected 0); stdout does not contain 'x'; "
                "stderr does not contain 'y'; stdout does not match pattern /^a$/; stdout does not match pattern /q/; "
                "stdout matches disallowed pattern /a/",
                id="every violation",
            ),
        ],
    )
    def test_table(tmp_path: Path, path: str, config: dict[str, Any], code: int, passed: bool, evidence: str) -> None:
        result = run(tmp_path, {**config, "env": {"PATH": path, "CODE": code, "PRINTS": "no"}})
        assert (result.passed, result.score, result.status, result.evidence) == (passed, float(passed), None, evidence)
        assert result.name == f"run-command {' '.join([config['command'], *config.get('args', [])])}"

    def test_a_child_that_ignores_the_request_to_end_is_killed_with_its_children(tmp_path: Path) -> None:
        line = "trap '' TERM; (trap '' TERM; sleep 60 & echo $! > pid; wait) & echo started; wait; sleep 60"
        result = run(tmp_path, {"command": line, "timeout": "500ms"})
        assert result.evidence == f"Command '{line}' timed out after 500ms"
        assert (metadata(result)["timedOut"], metadata(result)["exitCode"]) == (True, None)
        assert metadata(result)["stdout"] == "started\n"
        assert is_gone(int((tmp_path / "pid").read_text()))

    def test_what_a_command_leaves_behind_is_ended(tmp_path: Path) -> None:
        result = run(tmp_path, {"command": "sleep 60 & echo $! > pid; echo done", "stdout_contains": "done"})
        assert result.passed
        assert is_gone(int((tmp_path / "pid").read_text()))

    def test_the_end_of_the_grading_budget_ends_the_command(tmp_path: Path) -> None:
        entry = {"type": "run-command", "config": {"command": "sleep 60 & echo $! > pid; wait"}}
        result = grade_trajectory(
            trajectory(work_dir=str(tmp_path)),
            [entry],
            scoring=Scoring(timeout_ms=800, timeout_text="800ms"),
            host=PluginHost.from_objects(plugin),
        )
        assert result.details is not None
        assert (result.status, result.details[0].evidence) == ("error", "Grading timed out after 800ms")
        assert is_gone(int((tmp_path / "pid").read_text()))

    def test_sub_path_must_not_leave_the_workspace(tmp_path: Path) -> None:
        work = tmp_path / "work"
        (work / "src" / "app").mkdir(parents=True)
        (work / "out").symlink_to("..")
        result = run(work, {"command": "ls", "sub_path": "out"})
        assert (result.passed, result.status, result.evidence) == (False, None, "sub_path 'out' escapes the workspace")
        assert run(work, {"command": "pwd", "sub_path": "src\\app", "stdout_matches": "src/app\n$"}).passed

    def is_gone(pid: int) -> bool:
        import psutil

        try:
            return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True


def test_environment(tmp_path: Path) -> None:
    script = (
        "import os, sys; e = os.environ; sys.stdin.read() and sys.exit(9); "
        "print(e['EVALUATE_WORKSPACE'] == os.getcwd(), e['A'], e['B'], e['C'], e['D'], 'EVALUATE_GRADER_INPUT' in e)"
    )
    result = run(tmp_path.resolve(), python(script, env={"A": "x", "B": 1.0, "C": True, "D": 2.5}))
    assert metadata(result)["stdout"].split() == ["True", "x", "1", "true", "2.5", "False"]
    assert result.passed


def test_invalid_bytes_and_long_output(tmp_path: Path) -> None:
    script = "import sys; sys.stdout.buffer.write(b'\\xff' + b'x' * 5000 + b'end'); sys.stderr.write('e')"
    result = run(tmp_path, python(script, stdout_contains="\ufffdx", stdout_matches="end$", stderr_contains=["e"]))
    assert result.passed
    assert metadata(result)["stdout"] == "x" * 4093 + "end"
    assert metadata(result)["stdoutTruncated"] is True
    assert metadata(result)["stderr"] == "e"
    assert "stderrTruncated" not in metadata(result)


def test_a_flood_of_output_is_dropped(tmp_path: Path) -> None:
    script = "import os\nblock = b'y' * (1 << 20)\nfor _ in range(1024): os.write(1, block)\nos.write(1, b'end')"
    before = peak_memory()
    result = run(tmp_path, python(script, stdout_not_matches="end", timeout="2m"))
    assert result.evidence.endswith("exited with code 0 (expected 0)")
    assert result.passed
    assert (len(metadata(result)["stdout"]), metadata(result)["stdoutTruncated"]) == (4096, True)
    assert peak_memory() - before < 200 * 2**20


def peak_memory() -> int:
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def test_patterns_are_checked_before_anything_runs(tmp_path: Path) -> None:
    result = run(tmp_path, python("open('ran', 'w')", stdout_matches=["a", "("], stdout_not_matches="["))
    assert (result.passed, result.status) == (False, None)
    assert result.evidence.startswith("Invalid regex pattern: (. Error: ")
    assert not (tmp_path / "ran").exists()


def test_the_workspace_must_be_there(tmp_path: Path) -> None:
    result = run(tmp_path / "missing", {"command": "ls"})
    assert (result.status, result.evidence) == ("error", f"Workspace is not accessible: {tmp_path / 'missing'}")


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({}, "'command' is required"),
        ({"command": ""}, "'command' must not be empty"),
        ({"command": "a", "args": "b"}, "'args' must be a list"),
        ({"command": "a", "args": [1]}, "'args[0]' must be a string"),
        ({"command": "a", "timeout": 30}, "'timeout' must be a duration above zero such as 30s or 1m30s"),
        ({"command": "a", "timeout": "30"}, "'timeout' must be a duration above zero such as 30s or 1m30s"),
        ({"command": "a", "timeout": "0s"}, "'timeout' must be a duration above zero such as 30s or 1m30s"),
        ({"command": "a", "expected_exit_code": "0"}, "'expected_exit_code' must be an integer"),
        ({"command": "a", "expected_exit_code": True}, "'expected_exit_code' must be an integer"),
        ({"command": "a", "stdout_contains": []}, "'stdout_contains' must not be empty"),
        ({"command": "a", "sub_path": "../x"}, "'sub_path' must stay inside the workspace"),
        ({"command": "a", "sub_path": "a\\..\\..\\x"}, "'sub_path' must stay inside the workspace"),
        ({"command": "a", "sub_path": "C:\\x"}, "'sub_path' must stay inside the workspace"),
        ({"command": "a", "sub_path": "/x"}, "'sub_path' must stay inside the workspace"),
        ({"command": "a", "env": ["A=1"]}, "'env' must be a mapping"),
        ({"command": "a", "env": {"A": None}}, "'env.A' must be a string, a number or a boolean"),
        ({"command": "a", "env": {"A=B": "1"}}, "'env' has the invalid variable name 'A=B'"),
        (
            {"command": "a", "env": {"evaluate_grader_input": "1"}},
            "'env' must not set the reserved variable 'EVALUATE_GRADER_INPUT'",
        ),
        ({"command": "a", "cwd": "b"}, "unknown key 'cwd'"),
    ],
)
def test_invalid_configs(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        PluginHost.from_objects(plugin).parse_config(RECORD, config)
    assert str(caught.value) == f"Invalid config for run-command: {problem}"


def test_names_never_come_from_the_environment(tmp_path: Path) -> None:
    result = run(tmp_path, {"command": "exit 0", "env": {"KEY": "secret-value"}})
    assert result.name == "run-command exit 0"
    assert "secret-value" not in result.model_dump_json()


def test_pytest_points_here(tmp_path: Path) -> None:
    (tmp_path / "eval.yaml").write_text("name: e\nstimuli: [{name: s, prompt: p, graders: [{type: pytest}]}]\n")
    loaded = read_eval_spec(tmp_path / "eval.yaml", host=PluginHost.from_objects(plugin))
    (item,) = [item for item in loaded.diagnostics if item.level == "error"]
    assert (item.code, item.hint) == (
        "unknown-grader-type",
        "no installed plugin scores single tests; 'run-command' runs them all and looks at the exit code",
    )
