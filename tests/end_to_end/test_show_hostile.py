"""Names and texts that want to be more than text, broken files, large files, and readers that leave."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ending import ends

from vally import GraderResult, dump_record, record_line
from vally.testing import CliResult, event, trajectory, trial_result

Vally = Callable[..., CliResult]
WriteRun = Callable[..., Path]
Make = Any
EVIL = "\x1b[31mred\x1b]0;title\x07 \u202eabc\r::error::x ghp_abcdefghijklmnopqrstuvwxyz0123456789"


def evil_trial(**fields: Any) -> Any:
    facts = trajectory(
        event("user_message", content=EVIL),
        event("tool_call", tool_name=EVIL, tool_call_id="1", arguments={EVIL: EVIL}),
        event("tool_result", tool_name=EVIL, tool_call_id="1", success=True, result=EVIL),
        event("custom", event_type=EVIL, more=EVIL),
        stimulus={"name": EVIL, "prompt": EVIL},
        output=EVIL,
        diff=f"diff --git a/{EVIL} b/x\n@@ -1 +1 @@\n+{EVIL}\n",
        end_reason=EVIL,
        metadata={"executor": EVIL, "model": EVIL},
    )
    inner = GraderResult.verdict(False, EVIL, name=EVIL)
    grade = GraderResult.verdict(False, EVIL, name=EVIL, details=[inner])
    names = {"eval_name": EVIL, "model": EVIL, "variant": EVIL}
    return trial_result(EVIL, grade, trajectory=facts, warnings=[EVIL], **names, **fields)


@pytest.mark.parametrize(
    "words",
    [[], ["--trial", "0"], ["--trial", "0", "--full"], ["--events"], ["--events", "--full"], ["--diff"], ["-v"]],
)
def test_nothing_of_others_controls_the_terminal(words: list[str], write_run: WriteRun, vally: Vally) -> None:
    write_run(evil_trial(), evil_trial(status="error", error=EVIL, trial_index=1), summary=None)
    shown = vally("show", *words).stdout
    assert shown.count("red") >= 2
    assert not set(shown) & {"\x1b", "\r", "\x07", "\u202e", "\x9b"}
    assert "ghp_abcdef" not in shown


def test_nothing_of_others_controls_the_list(write_run: WriteRun, make: Make, vally: Vally) -> None:
    evals = [{**make.summary["evals"][0], "name": EVIL}]
    write_run(evil_trial(), name="run\x1b[31m\u202e", summary={**make.summary, "evals": evals})
    result = vally("runs")
    assert not set(result.stdout + result.stderr) & {"\x1b", "\r", "\u202e"}


@pytest.mark.parametrize("command", [["show"], ["show", "--trial", "0"], ["runs"]])
def test_on_github_no_text_is_a_workflow_command(command: list[str], write_run: WriteRun, vally: Vally) -> None:
    write_run(trial_result("s", GraderResult.verdict(False, "x", name="a\n::error::x")), summary=None)
    lines = vally(*command, env={"GITHUB_ACTIONS": "true"}).stdout.splitlines()
    stopped: str | None = None
    for line in lines:
        if stopped is None and line.startswith("::stop-commands::"):
            stopped = line.removeprefix("::stop-commands::")
        elif stopped is not None and line == f"::{stopped}::":
            stopped = None
        else:
            assert stopped is not None or not line.startswith("::"), line
    assert any(line.startswith("::stop-commands::") for line in lines)


BROKEN = {
    "empty": b"",
    "blank lines": b"\n\n",
    "torn": b'{"type": "trial-result", "stim',
    "not json": b"hello\n",
    "a number": b"42\n",
    "binary": bytes(range(256)) * 10,
    "wrong types": b'{"type": "trial-result", "stimulus": 3, "trajectory": [], "gradeResult": "", "trialIndex": ""}\n',
    "wrong events": b'{"type": "trial-result", "itemId": "i", "status": "success", "trajectory": {"events": [3]}}\n',
    "bad status": b'{"type": "trial-result", "status": "odd", "trajectory": null, "gradeResult": null}\n',
    "bad summary": b'{"type": "run-summary", "evals": 3, "totals": [], "passed": "yes"}\n',
    "deep": b'{"type": "trial-result", "trajectory": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
}


@pytest.mark.parametrize(
    "words", [[], ["--trial", "0"], ["--failed"], ["--output", "json"], ["--events"]], ids=" ".join
)
@pytest.mark.parametrize("name", sorted(BROKEN))
def test_a_broken_file_is_one_message(name: str, words: list[str], write_run: WriteRun, vally: Vally) -> None:
    write_run(summary=None, tail=BROKEN[name])
    result = vally("show", *words)
    assert result.exit_code in (0, 1)
    if result.exit_code:
        assert "error: " in result.stderr
    assert vally("runs").exit_code == 0


def test_the_good_lines_of_a_broken_file_count(write_run: WriteRun, make: Make, vally: Vally) -> None:
    directory = write_run(*make.three_trials())
    path = directory / "results.jsonl"
    path.write_bytes(b"".join(broken + b"\n" for broken in BROKEN.values() if b"\n" not in broken) + path.read_bytes())
    result = vally("show")
    assert result.exit_code == 0
    assert "✘ FAIL  2/3 trials passed" in result.stdout
    assert result.stderr.count("[bad-record]") >= 1


@pytest.mark.parametrize("words", [[], ["--trial", "0"], ["--events"]], ids=" ".join)
def test_a_record_that_is_none_hides_no_other(words: list[str], write_run: WriteRun, make: Make, vally: Vally) -> None:
    write_run(*make.three_trials(), summary=None, tail=BROKEN["wrong events"] + BROKEN["bad status"])
    result = vally("show", *words)
    assert result.exit_code == 0
    assert "greets" in result.stdout
    assert "[bad-record]" in result.stderr


def program(tmp_path: Path, *words: str, **options: Any) -> subprocess.Popen[bytes]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **options.pop("env", {})}
    return subprocess.Popen([sys.executable, "-m", "vally", *words], cwd=tmp_path, env=environ, **options)


def test_a_reader_that_leaves_ends_the_program_quietly(tmp_path: Path, write_run: WriteRun, make: Make) -> None:
    write_run(*(trial_result(f"s{number}", make.said("x" * 400)) for number in range(2000)), summary=None)
    for words in (["show"], ["show", "--output", "json"], ["show", "--events"]):
        process = program(tmp_path, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        errors = process.stderr.read().decode()
        process.stderr.close()
        assert process.wait(60) == 141, errors
        assert "Traceback" not in errors


def on_a_terminal(tmp_path: Path, *words: str, env: dict[str, str]) -> str:
    """What appears on a terminal."""
    master, slave = pty.openpty()
    process = program(tmp_path, *words, stdout=slave, stderr=slave, stdin=slave, env={"TERM": "xterm", **env})
    os.close(slave)
    text = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    os.close(master)
    assert process.wait(60) == 0
    return text.decode("utf-8", "replace")


def test_a_pager_on_a_terminal_unless_it_is_empty(tmp_path: Path, write_run: WriteRun, make: Make) -> None:
    write_run(*make.three_trials())
    pager = tmp_path / "pager"
    pager.write_text('#!/bin/sh\ncat > paged\necho "the pager has it"\n')
    pager.chmod(0o755)
    assert "the pager has it" in on_a_terminal(tmp_path, "show", env={"PAGER": f"{pager} -x"})
    assert "2/3 trials passed" in (tmp_path / "paged").read_text()
    assert "2/3 trials passed" in on_a_terminal(tmp_path, "show", env={"PAGER": ""})
    assert "2/3 trials passed" in on_a_terminal(tmp_path, "show", env={"PAGER": "no-such-pager"})


def test_leaving_the_pager_is_no_error(tmp_path: Path, write_run: WriteRun, make: Make) -> None:
    write_run(*(trial_result(f"s{number}", make.said("x" * 400)) for number in range(1000)), summary=None)
    assert "internal" not in on_a_terminal(tmp_path, "show", env={"PAGER": "head -n 1"})


def test_a_signal_ends_it_together_with_the_pager(tmp_path: Path, write_run: WriteRun, make: Make) -> None:
    write_run(*make.three_trials())
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho $$ > pid-of-pager\nexec sleep 300\n")
    pager.chmod(0o755)
    os.mkfifo(tmp_path / "pid-of-pager")
    master, slave = pty.openpty()
    streams = {"stdout": slave, "stderr": subprocess.DEVNULL, "stdin": slave}
    process = program(tmp_path, "show", env={"TERM": "xterm", "PAGER": str(pager)}, **streams)
    pid = int((tmp_path / "pid-of-pager").read_text())
    process.terminate()
    assert process.wait(60) == 143
    ends(pid)
    os.close(slave)
    os.close(master)


def test_a_signal_while_the_pager_starts_ends_both(tmp_path: Path, write_run: WriteRun, make: Make) -> None:
    write_run(*make.three_trials())
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho $$ > pid-of-pager\nkill -TERM $PPID\nexec sleep 300\n")
    pager.chmod(0o755)
    master, slave = pty.openpty()
    streams = {"stdout": slave, "stderr": subprocess.DEVNULL, "stdin": slave}
    process = program(tmp_path, "show", env={"TERM": "xterm", "PAGER": str(pager)}, **streams)
    assert process.wait(60) == 143
    ends(int((tmp_path / "pid-of-pager").read_text()))
    os.close(slave)
    os.close(master)


MEASURE = """
import resource, sys
from vally.cli.program import run
code = run(sys.argv[1:])
usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(code, usage if sys.platform != "darwin" else usage // 1024, file=sys.stderr)
"""


def peak_kib(tmp_path: Path, *words: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *words],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=300,
        check=True,
    )
    code, peak = done.stderr.split()[-2:]
    assert code == b"0"
    return int(peak)


@pytest.mark.heavy
def test_memory_of_100000_trials_is_that_of_their_places(tmp_path: Path, write_run: WriteRun, make: Make) -> None:
    directory = write_run()
    events = [event("assistant_message", content="y" * 2000)]
    record = dump_record(trial_result("NAME", make.said("ok"), trajectory=trajectory(*events), total_trials=100))
    pattern = record_line(record).decode()

    def write(count: int) -> int:
        with (directory / "results.jsonl").open("w") as file:
            for number in range(count):
                line = pattern.replace("NAME", f"s{number // 100}").replace(
                    '"trialIndex":0', f'"trialIndex":{number % 100}'
                )
                file.write(line.replace("trial-0", f"trial-{number % 100}"))
        return (directory / "results.jsonl").stat().st_size

    write(1000)
    small = {words: peak_kib(tmp_path, *words) for words in (("show",), ("runs",), ("show", "--failed"))}
    size = write(100_000)
    for words, before in small.items():
        grown = peak_kib(tmp_path, *words) - before
        # Less than a kilobyte per trial for its place and verdict, whatever its record holds.
        assert grown < 100_000, f"{words}: {grown} KiB more"
        assert grown * 1024 < size / 2
    summary = json.dumps({**make.summary, "totals": {**make.summary["totals"], "trials": 100_000}})
    with (directory / "results.jsonl").open("a") as file:
        file.write(summary + "\n")
    # With a summary the list reads the end of the file only.
    assert peak_kib(tmp_path, "runs") - small["runs",] < 4_000
