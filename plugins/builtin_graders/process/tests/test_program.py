"""`program`."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from vally import ConfigInvalid, Event, GraderResult, GraderSpec, PluginHost
from vally.testing import event, grade, trajectory
from vally_grader_process import plugin

RECORD: GraderSpec = {record.name: record for record in plugin.vally_graders()}["program"]
UNPARSEABLE = "Grader returned unparseable JSON output on stdout: SyntaxError: "
VALID = {"passed": True, "score": 1, "evidence": "fine"}


def run(work_dir: Path, config: dict[str, Any], *events: Event, **fields: Any) -> GraderResult:
    return grade(RECORD, config, trajectory(*events, work_dir=str(work_dir), **fields))


def python(script: str, **config: Any) -> dict[str, Any]:
    return {"program": sys.executable, "args": ["-c", script], **config}


def prints(text: str, code: int = 0) -> dict[str, Any]:
    return python(f"import sys; sys.stdout.reconfigure(encoding='utf-8'); print({text!r}); sys.exit({code})")


def metadata(result: GraderResult) -> dict[str, Any]:
    assert result.metadata is not None
    return result.metadata


@pytest.mark.parametrize(
    ("config", "passed", "score", "evidence", "code"),
    [
        pytest.param(python(""), True, 1, "Grader exited successfully", 0, id="PG-1"),
        pytest.param(python("raise SystemExit(1)"), False, 0, "Grader exited with exit code 1", 1, id="PG-2"),
        pytest.param(
            prints('{"name":"x","passed":true,"score":0.85,"evidence":"14 of 16","kind":"code"}'),
            True,
            0.85,
            "14 of 16",
            0,
            id="PG-3",
        ),
        pytest.param(prints('{"passed":false,"score":0.4,"evidence":"e"}', 1), False, 0.4, "e", 1, id="PG-4"),
        pytest.param(prints(" \n\t "), True, 1, "Grader exited successfully", 0, id="blank output"),
        pytest.param(
            prints('\n{"passed":false,"score":0,"evidence":"a\\nb","x":1}\n'),
            False,
            0,
            "a\nb",
            0,
            id="blanks and unknown keys",
        ),
    ],
)
def test_verdicts(tmp_path: Path, config: dict[str, Any], passed: bool, score: float, evidence: str, code: int) -> None:
    result = run(tmp_path, config)
    assert (result.passed, result.score, result.status, result.evidence) == (passed, score, None, evidence)
    assert (metadata(result)["exitCode"], metadata(result)["stderr"]) == (code, "")
    assert metadata(result)["durationMs"] >= 0


@pytest.mark.parametrize(
    ("config", "evidence", "details"),
    [
        pytest.param(prints("log line"), UNPARSEABLE, None, id="PG-5"),
        pytest.param(prints('{"passed": true, "score": 1'), UNPARSEABLE, None, id="half an object"),
        pytest.param(prints('{"passed": true, "score": NaN, "evidence": ""}'), UNPARSEABLE, "NaN", id="NaN"),
        pytest.param(prints("[" * 100_000), UNPARSEABLE, None, id="deep nesting"),
        pytest.param(prints(json.dumps(VALID) * 2), UNPARSEABLE, None, id="two objects"),
        pytest.param(prints('{"passed":"yes"}'), "Grader output did not match schema", "passed: ", id="PG-6"),
        pytest.param(prints("[]"), "Grader output did not match schema", "output: ", id="no object"),
        pytest.param(
            prints(json.dumps({**VALID, "score": 1.5})),
            "Grader output did not match schema",
            "score: ",
            id="score too high",
        ),
        pytest.param(
            prints(json.dumps({**VALID, "score": True})),
            "Grader output did not match schema",
            "score: ",
            id="score boolean",
        ),
        pytest.param(
            prints(json.dumps({**VALID, "details": [{"passed": 1}]})),
            "Grader output did not match schema",
            "details.0.",
            id="nested",
        ),
        pytest.param(
            prints(json.dumps({**VALID, "status": "error"})), "Grader output did not match schema", "status", id="both"
        ),
        pytest.param(
            prints(json.dumps(VALID), 3),
            "Grader reported a pass but exited with exit code 3",
            None,
            id="pass with code",
        ),
        pytest.param({"program": "nope-xyz"}, "Failed to start grader program: ENOENT (spawn)", None, id="PG-7"),
        pytest.param(
            python("import time; print('{}', flush=True); time.sleep(60)", timeout="800ms"),
            "Grader timed out",
            None,
            id="timeout",
        ),
    ],
)
def test_errors(tmp_path: Path, config: dict[str, Any], evidence: str, details: str | None) -> None:
    result = run(tmp_path, config)
    assert (result.status, result.passed, result.score, result.label) == ("error", False, 0, None)
    assert result.evidence.startswith(evidence) if evidence == UNPARSEABLE else result.evidence == evidence
    error = metadata(result)["error"]
    assert error["kind"] == "program"
    assert (details or evidence) in error["message"]


def test_a_flood_of_output_is_an_error(tmp_path: Path) -> None:
    script = "import os\nblock = b'y' * (1 << 20)\nfor _ in range(1024): os.write(1, block)"
    result = run(tmp_path, python(script, timeout="2m"))
    assert (result.status, result.evidence) == ("error", "Grader output exceeded 10485760 bytes")


def test_what_is_reported_is_taken_over(tmp_path: Path) -> None:
    reported = {
        **VALID,
        "name": "mine",
        "kind": "human",
        "metadata": {"a": [1], "exitCode": "no"},
        "details": [
            {"name": "d", "passed": False, "score": 0.5, "evidence": "half", "details": [{**VALID, "name": "deep"}]},
            {"passed": False, "score": 0, "evidence": "broke", "status": "error"},
        ],
    }
    config = prints(json.dumps(reported))
    result = run(tmp_path, config)
    assert result.name.startswith("program ")
    assert result.kind == "human"
    assert metadata(result)["a"] == [1]
    assert (metadata(result)["reportedName"], metadata(result)["exitCode"]) == ("mine", 0)
    assert result.details is not None
    half, broke = result.details
    assert (half.name, half.passed, half.score, half.grader_type, half.label) == (
        "d",
        False,
        0.5,
        "program",
        "incorrect",
    )
    assert half.details is not None
    assert (half.details[0].name, half.details[0].passed) == ("deep", True)
    assert (broke.status, broke.label) == ("error", None)


def test_a_reported_error_is_one(tmp_path: Path) -> None:
    result = run(tmp_path, prints('{"passed":false,"score":0.7,"evidence":"no database","status":"error"}'))
    assert (result.status, result.score, result.evidence) == ("error", 0, "no database")
    assert metadata(result)["error"] == {"kind": "program", "message": "no database"}


def test_the_program_sees_the_whole_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    work = (tmp_path / "work").resolve()
    (work / "sub").mkdir(parents=True)
    script = (
        "import json, os, pathlib, sys; e = os.environ; p = pathlib.Path(e['EVALUATE_GRADER_INPUT']); "
        "d = json.loads(p.read_text('utf-8')); "
        "m = {'input': d, 'mode': oct(p.stat().st_mode & 0o777), 'cwd': os.getcwd(), 'work': e['EVALUATE_WORKSPACE'], "
        "'key': e['KEY'], 'stdin': sys.stdin.read()}; "
        "print(json.dumps({'passed': True, 'score': 1, 'evidence': 'é', 'metadata': m}))"
    )
    config = python(script, sub_path="sub", env={"KEY": "secret-value"})
    result = run(work, config, event("tool_call", toolName="t", arguments={"x": 1.5}), output="out \ud800")
    assert result.passed, result.evidence
    seen = metadata(result)
    assert (seen["cwd"], seen["work"], seen["key"], seen["stdin"]) == (str(work / "sub"), str(work), "secret-value", "")
    assert seen["mode"] == "0o600" or sys.platform == "win32"
    assert set(seen["input"]) == {"trajectory", "stimulus", "config"}
    assert seen["input"]["trajectory"]["events"][0]["data"] == {"toolName": "t", "arguments": {"x": 1.5}}
    assert seen["input"]["trajectory"]["workDir"] == str(work)
    assert seen["input"]["config"] == {**config, "env": {"KEY": "<redacted>"}}
    assert list(scratch.iterdir()) == []


def test_invalid_bytes_on_both_outputs(tmp_path: Path) -> None:
    script = "import sys; sys.stdout.buffer.write(b'\\xff{'); sys.stderr.buffer.write(b'\\xfe' + b'x' * 5000)"
    result = run(tmp_path, python(script))
    assert result.evidence.startswith(UNPARSEABLE)
    assert metadata(result)["stderr"] == "x" * 4096
    assert metadata(result)["stderrTruncated"] is True


if sys.platform != "win32":

    def test_signal(tmp_path: Path) -> None:
        kill = "import os, signal, sys; sys.stdout.flush(); os.kill(os.getpid(), signal.SIGSEGV)"
        result = run(tmp_path, python(kill))
        assert (result.passed, result.status, result.evidence) == (
            False,
            None,
            "Grader was terminated by signal SIGSEGV",
        )
        result = run(tmp_path, python(f"print({json.dumps(VALID)!r}); {kill}"))
        assert (result.status, result.evidence) == (
            "error",
            "Grader reported a pass but was terminated by signal SIGSEGV",
        )

    def test_shell_joins_program_and_arguments_unquoted(tmp_path: Path) -> None:
        config = {"program": "exit", "args": ["3;", "exit 4"], "shell": True}
        result = run(tmp_path, config)
        assert (result.evidence, result.name) == ("Grader exited with exit code 3", "program exit 3; exit 4")

    def test_a_relative_program_starts_in_the_working_directory(tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        script = tmp_path / "sub" / "check.sh"
        script.write_text("#!/bin/sh\nexit 7\n")
        script.chmod(0o755)
        assert run(tmp_path, {"program": "./check.sh", "sub_path": "sub"}).evidence == "Grader exited with exit code 7"
        assert run(tmp_path, {"program": "./check.sh"}).evidence == "Failed to start grader program: ENOENT (spawn)"
        script.chmod(0o644)
        result = run(tmp_path, {"program": "./sub/check.sh"})
        assert result.evidence == "Failed to start grader program: EACCES (spawn)"

    def test_a_stubborn_family_is_killed(tmp_path: Path) -> None:
        import psutil

        line = "trap '' TERM; (trap '' TERM; sleep 60 & echo $! > pid; wait) & wait; sleep 60"
        assert run(tmp_path, {"program": line, "shell": True, "timeout": "500ms"}).evidence == "Grader timed out"
        pid = int((tmp_path / "pid").read_text())
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        pytest.param(
            {"program": "x", "env": {"Evaluate_Workspace": "/"}},
            "'env' must not set the reserved variable 'EVALUATE_WORKSPACE'",
            id="PG-8",
        ),
        ({}, "'program' is required"),
        ({"program": "x", "shell": 1}, "'shell' must be true or false"),
        ({"program": "x", "timeout": "fast"}, "'timeout' must be a duration above zero such as 30s or 1m30s"),
        ({"program": "x", "sub_path": ""}, "'sub_path' must stay inside the workspace"),
        ({"program": "x", "command": "y"}, "unknown key 'command'"),
    ],
)
def test_invalid_configs(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        PluginHost.from_objects(plugin).parse_config(RECORD, config)
    assert str(caught.value) == f"Invalid config for program: {problem}"


def test_the_workspace_must_be_there(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    result = run(missing, {"program": "true"})
    assert (result.status, result.evidence) == ("error", f"Workspace is not accessible: {missing}")
    assert metadata(result)["error"]["kind"] == "workspace"
