"""`vally oracle` with the graders and the backend that come with vally."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT

from vally.testing import CliResult, ProjectBuilder, run_cli, tree_digest

PATCH = '--- /dev/null\n+++ b/app.json\n@@ -0,0 +1 @@\n+{"port": 8080}\n'
ATIF = {
    "schema_version": "ATIF-v1.6",
    "session_id": "s",
    "agent": {"name": "a", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "Write app.json"},
        {"step_id": 2, "source": "agent", "message": "The port is 8080."},
    ],
}


def grader(kind: str, **config: Any) -> dict[str, Any]:
    return {"type": kind, "config": config}


STIMULI = [
    {
        "name": "writes-json",
        "golden_patch": {"inline": PATCH},
        "graders": [
            grader("file-exists", path="app.json"),
            grader("diff-contains", pattern="8080"),
            grader("output-contains", substring="8080"),
        ],
    },
    {
        "name": "says-port",
        "golden_trajectory": {"inline": ATIF},
        "golden_command": "echo 8080 > port.txt",
        "graders": [
            grader("output-contains", substring="8080"),
            grader("file-contains", path="port.txt", value="8080"),
            grader("run-command", command="test -f port.txt"),
            grader("tool-calls", disallowed=["rm"]),
        ],
        "constraints": {"reject_tools": ["bash"]},
    },
    {"name": "keeps-comments", "golden_command": "true", "graders": [grader("file-exists", path="nothing.txt")]},
    {"name": "no-input", "graders": [grader("completed")]},
]


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    made = ProjectBuilder(tmp_path)
    made.eval("demo", STIMULI)
    return made


def oracle(project: ProjectBuilder, *words: str, **options: Any) -> CliResult:
    result = run_cli(["oracle", "-e", "evals/demo/eval.yaml", *words], cwd=project.root, **options)
    assert "Traceback" not in result.stderr
    return result


def test_golden_inputs(project: ProjectBuilder) -> None:
    before = tree_digest(project.root)
    result = oracle(project)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "○ writes-json      golden patch                  2/2 graders passed, 1 n/a "
        "(output-contains: needs golden_trajectory)",
        "✔ says-port        golden command + trajectory   5/5 graders passed",
        "✘ keeps-comments   golden command                0/1 graders passed",
        "    ✘ file-exists  No files matching 'nothing.txt' found",
        "",
        "Oracle: 2/3 stimuli as expected",
    ]
    assert result.stderr == ""
    assert tree_digest(project.root) == before


def test_the_negative_control(project: ProjectBuilder) -> None:
    result = oracle(project, "--no-golden-input", "--stimulus", "says-port")
    assert result.exit_code == 0
    assert "baseline   3/3 graders failed, 2 n/a" in result.stdout
    assert "tool-calls: passes, but it asserts an absence" in result.stdout


def test_a_grader_that_passes_on_nothing(project: ProjectBuilder) -> None:
    graders = [grader("file-not-exists", path="bad.txt"), grader("diff-empty"), grader("file-exists", path="a")]
    project.eval("demo", [{"name": "s", "golden_command": "touch a", "graders": graders}])
    result = oracle(project, "--no-golden-input")
    assert result.exit_code == 1
    assert "✘ s   baseline   1/3 graders failed, trivially passing: file-not-exists, diff-empty" in result.stdout
    record = json.loads(oracle(project, "--no-golden-input", "--output", "jsonl").stdout)
    assert record["trivial"] == ["file-not-exists", "diff-empty"]


def test_machine_output(project: ProjectBuilder) -> None:
    lines = oracle(project, "--output", "jsonl", "--run-id", "r-1")
    assert lines.exit_code == 1
    records = {record["stimulus"]: record for record in map(json.loads, lines.stdout.splitlines())}
    assert set(records) == {"writes-json", "says-port", "keeps-comments"}
    first = records["writes-json"]
    assert {key: first[key] for key in ("type", "runId", "evalName", "evalFilePath", "mode", "goldenInput")} == {
        "type": "oracle-result",
        "runId": "r-1",
        "evalName": "demo",
        "evalFilePath": "evals/demo/eval.yaml",
        "mode": "golden",
        "goldenInput": "patch",
    }
    assert (first["status"], first["passed"], first["notApplicable"]) == ("success", True, ["output-contains"])
    assert len(first["gradeResult"]["details"]) == 2
    assert records["says-port"]["goldenInput"] == "command+trajectory"
    whole = json.loads(oracle(project, "--output", "json").stdout)
    assert (whole["type"], whole["version"], whole["passed"]) == ("oracle-run", 1, False)
    assert [item["stimulus"] for item in whole["results"]] == ["writes-json", "says-port", "keeps-comments"]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--stimulus", "no-input"], 1, "stimulus 'no-input' declares no golden input"),
        (["--stimulus", "no-*"], 1, "no stimulus with a golden input is selected"),
        (["--stimulus", "nobody"], 1, "no stimulus matches"),
        (["--no-golden-input", "--skip-grade"], 2, "--no-golden-input needs grades"),
        (["--tag", "area"], 2, "is not of the form key=v1,v2"),
        (["--no-golden-patch", "--stimulus", "writes-json"], 0, "'--no-golden-patch' is deprecated"),
    ],
)
def test_what_is_refused(words: list[str], code: int, text: str, project: ProjectBuilder) -> None:
    result = oracle(project, *words)
    assert (result.exit_code, text in result.stderr) == (code, True), result.stderr


def test_without_a_spec(tmp_path: Path) -> None:
    result = run_cli(["oracle"], cwd=tmp_path)
    assert result.exit_code == 2
    assert "missing option '--eval-spec'" in result.stderr


def test_errors_are_no_failures(project: ProjectBuilder) -> None:
    stimuli = [
        {"name": "patch", "golden_patch": {"inline": PATCH.replace("/dev/null", "a/app.json").replace("+1", "+1")}},
        {"name": "atif", "golden_trajectory": {"inline": {"schema_version": "ATIF-v1.6", "steps": []}}},
        {"name": "staging", "golden_command": "true", "environment": {"commands": ["exit 3"]}},
    ]
    graded = [
        {**item, "graders": [grader("file-exists", path="a"), grader("output-contains", substring="a")]}
        for item in stimuli
    ]
    project.eval("demo", graded)
    result = oracle(project)
    assert result.exit_code == 1
    assert re.search(r"⚠ atif .* error: golden_trajectory: ATIF validation: ", result.stdout)
    assert re.search(r"⚠ staging .* error: Setup command failed \(exit 3\)", result.stdout)
    record = json.loads(oracle(project, "--output", "jsonl", "--stimulus", "atif").stdout)
    assert (record["status"], record["passed"], record["gradeResult"]) == ("error", False, None)
    assert record["errorInfo"]["code"] == "golden-input-invalid"


def test_what_kept_a_grader_from_a_verdict_is_shown_whole(project: ProjectBuilder) -> None:
    said = json.dumps({"status": "error", "passed": False, "score": 0, "evidence": "why " * 200 + "the cause"})
    program = grader("program", program="/bin/sh", args=["-c", f"echo '{said}'"])
    project.eval("demo", [{"name": "s", "golden_command": "true", "graders": [program]}])
    (line,) = [line for line in oracle(project).stdout.splitlines() if "⚠ program" in line]
    assert line.endswith("why the cause")


def test_apply_only_and_keep_the_workspace(project: ProjectBuilder) -> None:
    result = oracle(project, "--skip-grade", "--workspace", "kept", "--stimulus", "writes-json")
    assert result.exit_code == 0
    assert "✔ writes-json   golden patch   applied" in result.stdout.replace("○", "✔")
    assert result.stdout.endswith("\nOracle: 1/1 stimulus applied, not graded\n")
    assert (project.root / "kept" / "writes-json" / "app.json").read_text() == '{"port": 8080}\n'


def test_hostile_names_and_evidence(project: ProjectBuilder) -> None:
    evil = "\x1b[31m::error::x\u202e"
    said = {**ATIF, "steps": [ATIF["steps"][0], {"step_id": 2, "source": "agent", "message": evil}]}
    graders = [{**grader("output-contains", substring=f"not {evil}"), "name": f"a{evil}"}]
    project.eval("demo", [{"name": "a ::error::b", "golden_trajectory": {"inline": said}, "graders": graders}])
    result = oracle(project, "-v", env={"GITHUB_ACTIONS": "true"})
    assert not set(result.stdout) & {"\x1b", "\u202e"}
    lines = result.stdout.splitlines()
    assert lines[0].startswith("::stop-commands::")
    assert not [line for line in lines if line.startswith("::error")]


def test_ctrl_c_ends_it_with_nothing_left(project: ProjectBuilder, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    project.eval(
        "demo",
        [
            {
                "name": "s",
                "golden_command": f"echo x > {tmp_path / 'fifo'}; exec sleep 300",
                "graders": [grader("file-exists", path="a")],
            }
        ],
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "vally", "oracle", "-e", "evals/demo/eval.yaml"],
        cwd=project.root,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "TMPDIR": str(tmp_path),
            "VALLY_CACHE_DIR": str(tmp_path / "c"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    # The golden command runs once it has written.
    assert (tmp_path / "fifo").read_text() == "x\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b"not run: cancelled" in out
    assert b"Traceback" not in err
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("vally-")]


@pytest.mark.parametrize(
    ("name", "words", "code"),
    [
        ("eval", [], 0),
        ("eval", ["--no-golden-input"], 0),
        ("lenient.eval", [], 0),
        ("lenient.eval", ["--no-golden-input"], 1),
    ],
)
def test_the_example(name: str, words: list[str], code: int, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "oracle", tmp_path / "oracle")
    result = run_cli(["oracle", "-e", f"oracle/{name}.yaml", *words], cwd=tmp_path)
    assert result.exit_code == code, result.stdout + result.stderr
    assert ("trivially passing: file-not-exists" in result.stdout) == bool(code)
