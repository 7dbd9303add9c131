"""`vally show`: single trials, selections, records."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vally import GraderResult, dump_record, record_line
from vally.testing import CliResult, trajectory, trial_result

Vally = Callable[..., CliResult]
WriteRun = Callable[..., Path]
Make = Any


def test_one_trial_in_full(write_run: WriteRun, make: Make, vally: Vally) -> None:
    write_run(make.busy_trial(), summary=None)
    result = vally("show", "--stimulus", "writes")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "scripted / writes   default-model   ✘ fail   1.2s".replace("✘ fail", "✘ fail 0.75")
    for expected in (
        "Prompt",
        "  Write app.json",
        "Timeline",
        "Output",
        "  done",
        "  Tokens      120 (in 100, out 20)",
        "  Tool calls  2 (bash 1, write 1)",
        "  Diff        1 file changed, +1 -0 (shown with --diff)",
        "Graders (1/2)",
        "  ✔ says it  found",
        "  ✘ panel  0.50  half of it",
        "    ✔ says it  first part",
        "    ✘ says it  second part",
    ):
        assert expected in lines, expected


@pytest.mark.parametrize(("backend", "shown"), [("ray/sandbox", ["ray/sandbox"]), (None, [])])
def test_where_a_trial_ran(
    backend: str | None, shown: list[str], write_run: WriteRun, make: Make, vally: Vally
) -> None:
    write_run(trial_result("s", make.said("hi"), trajectory=trajectory(output="hi"), backend=backend))
    lines = vally("show", "--stimulus", "s").stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("  Backend ")] == shown


def test_the_timeline_words_every_kind_of_event(write_run: WriteRun, make: Make, vally: Vally) -> None:
    write_run(make.busy_trial())
    text = "\n".join(" ".join(line.split()) for line in vally("show", "--events").stdout.splitlines())
    for expected in (
        "user Write app.json with the port 8080",
        "reasoning thinking",
        '→ write {"path":"app.json"}',
        "← ok (simulated) File written",
        "← failed (exit 3) boom",
        "skill writer skills/writer/SKILL.md",
        "error slow [429]",
        "compaction",
        "assistant done",
        "end completed",
    ):
        assert expected in text, expected
    assert "turn_start" not in text
    assert "tokens" not in text


def test_full_shortens_nothing(write_run: WriteRun, make: Make, vally: Vally) -> None:
    long = "\n".join(f"line {number} " + "x" * 200 for number in range(30))
    facts = trajectory(output=long, stimulus={"name": "s", "prompt": long})
    write_run(trial_result("s", make.said(long), trajectory=facts))
    short = vally("show", "--stimulus", "s").stdout
    assert "… 18 more lines, shown with --full" in short
    assert "line 29" not in short
    assert max(map(len, short.splitlines())) <= 100
    whole = vally("show", "--stimulus", "s", "--full").stdout
    assert whole.count("line 29 " + "x" * 200) == 2
    assert whole.count("x" * 200) == 3 * 30


def test_turns_are_told_apart(write_run: WriteRun, make: Make, vally: Vally) -> None:
    events = [
        {"type": "user_message", "turn": 0, "data": {"content": "one"}},
        {"type": "user_message", "turn": 1, "data": {"content": "two"}},
    ]
    facts = trajectory(stimulus={"name": "s", "turns": ["one", "two"]}).model_copy(update={"events": []})
    record = dump_record(trial_result("s", make.said("ok"), trajectory=facts))
    record["trajectory"]["events"] = events
    directory = write_run(summary=None)
    (directory / "results.jsonl").write_bytes(record_line(record))
    shown = vally("show", "--stimulus", "s").stdout
    assert "Prompt 1/2\n  one\nPrompt 2/2\n  two\n" in shown
    assert shown.index("── turn 1 ──") < shown.index("── turn 2 ──")


def test_the_diff_in_colour(write_run: WriteRun, make: Make, vally: Vally) -> None:
    write_run(make.busy_trial())
    plain = vally("show", "--diff").stdout
    assert plain.endswith("@@ -0,0 +1 @@\n+{}\n")
    colored = vally("show", "--diff", "--color", "always").stdout
    assert "\x1b[36m@@ -0,0 +1 @@\x1b[0m\n\x1b[32m+{}\x1b[0m\n" in colored


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"diff": ""}, "no change in the workspace"),
        ({"diff_error": "git not found"}, "no diff: Capturing it failed: git not found"),
        ({"diff_path": "a/workspace.diff"}, "-old"),
        ({"diff_path": "../../secret"}, "no diff: The diff file '../../secret' cannot be read."),
        ({}, "no diff: It was not recorded."),
        (
            {"turn_diffs": [{"turn": 0, "diff": "-turn one"}, {"turn": 1, "status": "failed", "error": "late"}]},
            "-turn one",
        ),
    ],
)
def test_where_a_diff_may_be(
    fields: dict[str, object], expected: str, write_run: WriteRun, make: Make, vally: Vally
) -> None:
    directory = write_run(trial_result("s", make.said("ok"), trajectory=trajectory(**fields)))
    (directory / "a").mkdir()
    (directory / "a" / "workspace.diff").write_text("diff --git a/x b/x\n@@ -1 +0,0 @@\n-old\n")
    (directory.parent.parent / "secret").write_text("-secret")
    shown = vally("show", "--diff").stdout
    assert expected in shown
    assert "-secret" not in shown


def test_a_cut_trajectory_is_completed_from_its_file(write_run: WriteRun, make: Make, vally: Vally) -> None:
    cut = trajectory(output="cut", truncated=True, trajectory_path="t/trajectory.json")
    directory = write_run(trial_result("s", make.said("ok"), trajectory=cut))
    missing = vally("show", "--stimulus", "s")
    assert "the trajectory was cut, and its file is not there any more" in missing.stderr
    assert "  cut\n" in missing.stdout
    (directory / "t").mkdir()
    (directory / "t" / "trajectory.json").write_text(json.dumps({"output": "whole"}))
    found = vally("show", "--stimulus", "s")
    assert found.stderr == ""
    assert "  whole\n" in found.stdout


def test_nothing_failed(write_run: WriteRun, make: Make, vally: Vally) -> None:
    write_run(trial_result("fine", make.said("ok")))
    result = vally("show", "--failed")
    assert (result.exit_code, result.stdout) == (0, "no trial failed\n")
    assert json.loads(vally("show", "--failed", "--output", "json").stdout) == []


def test_the_threshold_of_the_eval_decides_what_failed(write_run: WriteRun, make: Make, vally: Vally) -> None:
    evals = [{**make.summary["evals"][0], "threshold": 0.4}]
    half = trial_result("half", make.said("a"), make.said("b", passed=False))
    write_run(half, summary={**make.summary, "evals": evals})
    assert vally("show", "--failed").stdout == "no trial failed\n"
    write_run(half)
    assert "✘ fail 0.50" in vally("show", "--failed").stdout


def test_the_records_as_json(write_run: WriteRun, make: Make, vally: Vally) -> None:
    made = make.three_trials()
    write_run(*made)
    result = vally("show", "--output", "json")
    assert json.loads(result.stdout) == [json.loads(record_line(dump_record(item))) for item in made]
    assert result.stdout.count("\n") == 2 + len(made)


def test_of_several_lines_of_one_item_the_last_counts(write_run: WriteRun, make: Make, vally: Vally) -> None:
    write_run(trial_result("s", make.said("old", passed=False)), trial_result("s", make.said("new")))
    records = json.loads(vally("show", "--output", "json").stdout)
    assert [item["gradeResult"]["passed"] for item in records] == [True]


def test_model_and_variant(write_run: WriteRun, make: Make, vally: Vally) -> None:
    made = [
        trial_result("s", make.said("ok"), model=model, variant=variant)
        for model in ("m1", "m2")
        for variant in ("main", "skilled")
    ]
    write_run(*made)
    shown = vally("show", "--model", "m2", "--variant", "skilled").stdout
    assert shown.splitlines()[0].startswith("scripted / s   skilled   m2   ✔ pass 1.00")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--stimulus", "gretts"], "--stimulus is one of: greets"),
        (["--trial", "9"], "--trial is one of: 0, 1, 2"),
        (["--model", "gpt"], "--model is one of: default-model"),
        (["--variant", "mian"], "did you mean 'main'?"),
    ],
)
def test_what_selects_nothing(words: list[str], hint: str, write_run: WriteRun, make: Make, vally: Vally) -> None:
    write_run(*make.three_trials())
    result = vally("show", *words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error: no trial matches [no-trial]" in result.stderr
    assert hint in result.stderr


def test_an_errored_trial_without_trajectory(write_run: WriteRun, vally: Vally) -> None:
    info = {"message": "down", "code": "provider-error", "phase": "running", "retryable": True}
    write_run(trial_result("s", status="error", error="down", error_info=info, warnings=["left over"]))
    shown = vally("show", "--stimulus", "s").stdout
    assert "error while running: down [provider-error]" in shown
    assert "warning: left over" in shown
    assert "no trajectory was recorded" in shown


def test_a_trial_without_evidence_or_name_of_a_grader(write_run: WriteRun, vally: Vally) -> None:
    write_run(trial_result("s", GraderResult.error("broke", name="")))
    shown = vally("show", "--stimulus", "s").stdout
    assert "Graders (0/1), 1 without verdict" in shown
    assert "⚠" in shown.splitlines()[0]


def test_what_kept_a_grader_from_a_verdict_is_shown_whole(write_run: WriteRun, vally: Vally) -> None:
    failed = GraderResult.verdict(False, "no " * 200 + "end", name="f")
    write_run(trial_result("s", GraderResult.error("why " * 200 + "the cause", name="g"), failed))
    broken, cut = vally("show", "--stimulus", "s").stdout.partition("Graders")[2].splitlines()[1:3]
    assert broken.endswith("why the cause")
    assert cut.endswith("…")


def test_trials_follow_each_other_in_the_order_of_the_plan(write_run: WriteRun, make: Make, vally: Vally) -> None:
    write_run(*make.three_trials())
    heads = [line for line in vally("show", "--events").stdout.splitlines() if "default-model" in line]
    assert [head.split("#")[1][:3] for head in heads] == ["1/3", "2/3", "3/3"]
