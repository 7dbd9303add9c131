"""`vally grade`: recorded trials, ATIF documents and session logs graded again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from ending import ends

from vally import GraderInput, GraderResult, GraderSpec, ReporterSpec, RunComplete, RunStart, TrialDone
from vally.testing import CliResult, run_cli

CONTAINS = {"type": "output-contains", "config": {"substring": "hello"}}
SPEC = {
    "name": "demo",
    "stimuli": [
        {"name": "greets", "prompt": "say hello", "tags": {"area": "a"}, "graders": [CONTAINS]},
        {
            "name": "talks",
            "turns": ["one", "two"],
            "tags": {"area": "b"},
            "graders": [{"type": "output-contains", "turn": 1, "config": {"substring": "second"}}],
        },
    ],
}


def write_spec(root: Path, spec: Mapping[str, Any] = SPEC, name: str = "eval.yaml") -> None:
    (root / name).write_text(json.dumps(spec))


def outcome(stimulus: str = "greets", output: str = "hello", **fields: Any) -> dict[str, Any]:
    """The least that is accepted."""
    trajectory = {"stimulus": {"name": stimulus}, "output": output}
    return {"status": "success", "gradeResult": None, "trajectory": trajectory, **fields}


def lines(*records: object) -> str:
    return "".join((item if isinstance(item, str) else json.dumps(item)) + "\n" for item in records)


def regrade(
    root: Path, *words: str, input: str | None = None, spec: Mapping[str, Any] = SPEC, **options: Any
) -> CliResult:
    write_spec(root, spec)
    result = run_cli(["grade", "-e", "eval.yaml", *words], cwd=root, input=input, **options)
    assert "Traceback" not in result.stdout + result.stderr
    assert "internal error" not in result.stderr
    return result


def records(result: CliResult) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_the_report(tmp_path: Path) -> None:
    two = {"type": "output-contains", "name": "has-x", "config": {"substring": "x"}}
    stimulus = {"name": "greets", "prompt": "p", "graders": [CONTAINS, two]}
    spec = {"name": "demo", "stimuli": [stimulus, {**stimulus, "name": "other", "graders": [CONTAINS]}]}
    result = regrade(tmp_path, input=lines(outcome(), outcome("other")), spec=spec)
    assert result.stdout == (
        "━━━ greets ━━━\n"
        "❌ greets (1/2 graders passed)\n"
        "  ✓ [output-contains] 'hello' found in output\n"
        "  ✗ [has-x] 'x' NOT found in output\n"
        "\n"
        "━━━ other ━━━\n"
        "✅ other (1/1 graders passed)\n"
        "  ✓ [output-contains] 'hello' found in output\n"
        "\n"
        "Score: 75.0% | FAILED\n"
    )
    assert (result.exit_code, result.stderr) == (0, "")


def test_several_trials_and_evals_are_told_apart(tmp_path: Path) -> None:
    write_spec(
        tmp_path, {"name": "second", "stimuli": [{"name": "only", "prompt": "p", "graders": [CONTAINS]}]}, "b.yaml"
    )
    text = lines(outcome(), outcome(), outcome("only", "no"))
    result = regrade(tmp_path, "-e", "b.yaml", input=text)
    assert "━━━ greets (trial 1/2) ━━━\n" in result.stdout
    assert "━━━ greets (trial 2/2) ━━━\n" in result.stdout
    assert result.stdout.endswith("demo: Score: 100.0% | PASSED\nsecond: Score: 0.0% | FAILED\n")


def test_records_of_a_run_are_graded_again_by_another_spec(tmp_path: Path) -> None:
    spec = {**SPEC, "defaults": {"executor": "mock", "runs": 2}}
    write_spec(tmp_path, spec)
    first = run_cli(["eval", "-e", "eval.yaml", "--output", "jsonl"], cwd=tmp_path)
    stricter = {"type": "output-contains", "config": {"substring": "never said"}}
    spec["stimuli"] = [{**item, "graders": [stricter]} for item in SPEC["stimuli"]]  # type: ignore[attr-defined]
    result = regrade(tmp_path, "--output", "jsonl", "--run-id", "again", input=first.stdout, spec=spec)
    before, after = records(first), records(result)
    assert len(after) == len(before) == 5
    for old, new in zip(before[:-1], after[:-1], strict=True):
        changed = {key for key in old if old[key] != new[key]}
        assert changed == {"gradeResult", "runId"}
        assert set(new) - set(old) == {"regraded"}
        assert (new["runId"], new["regraded"], new["gradeResult"]["passed"]) == ("again", True, False)
    summary = after[-1]
    assert (summary["type"], summary["runId"], summary["passed"], summary["totals"]["trials"]) == (
        "run-summary",
        "again",
        False,
        4,
    )
    assert "━━━ greets (trial 1/2) ━━━" in result.stderr


def test_the_input_is_never_changed(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(lines(outcome(), "broken", outcome()))
    before = (path.read_bytes(), path.stat().st_mtime_ns, sorted(path.name for path in tmp_path.iterdir()))
    for form in ("text", "json", "jsonl"):
        regrade(tmp_path, "results.jsonl", "--output", form)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before[:2]
    assert {item.name for item in tmp_path.iterdir()} == {*before[2], "eval.yaml"}


def test_graders_that_spoil_the_trajectory_do_not_get_into_the_output(tmp_path: Path) -> None:
    class Spoils:
        def grade(self, input: GraderInput[object]) -> GraderResult:
            input.trajectory.events[0].data["arguments"]["deep"].append("spoilt")
            input.trajectory.events[0].data["toolName"] = "spoilt"
            return GraderResult.verdict(True, "ok")

    event = {"type": "tool_call", "data": {"toolName": "t", "arguments": {"deep": []}}}
    record = outcome()
    record["trajectory"]["events"] = [event]
    spec = {"name": "demo", "stimuli": [{"name": "greets", "prompt": "p", "graders": [{"type": "spoils"}]}]}
    plugin = GraderSpec(name="spoils", summary="spoils", factory=Spoils)
    result = regrade(tmp_path, "--output", "jsonl", input=lines(record), spec=spec, plugins=[plugin])
    assert records(result)[0]["trajectory"]["events"] == [event]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("broken", "<stdin>:2: not valid JSON: "),
        ("[1]", "<stdin>:2: not a JSON object"),
        ({"x": 1}, "<stdin>:2: has neither a type nor a trajectory"),
        (outcome(status="odd"), "<stdin>:2: /status must be success, error or skipped, not 'odd'"),
        ({"trajectory": {"stimulus": {"name": "greets"}, "events": [{"type": "a"}, {"type": 1}]}},
         "<stdin>:2: /trajectory/events/1/type must be a string"),
        ({"trajectory": {"stimulus": {"name": "greets"}, "events": 5}}, "<stdin>:2: /trajectory/events must be a list"),
        ({"trajectory": {"stimulus": {"name": "greets"}, "output": 5}},
         "<stdin>:2: /trajectory/output must be a string"),
        ({"trajectory": [], "stimulus": "greets"}, "<stdin>:2: /trajectory must be an object"),
    ],
)  # fmt: skip
def test_a_malformed_line_is_named_and_the_others_are_graded(tmp_path: Path, line: object, problem: str) -> None:
    result = regrade(tmp_path, "--output", "jsonl", input=lines(outcome(), line, outcome()))
    assert f"error: {problem}" in result.stderr
    assert [item["type"] for item in records(result) if "type" in item] == ["run-summary"]
    assert len(records(result)) == 3
    assert records(result)[-1]["partial"] is False
    assert result.exit_code == 1


def test_of_many_malformed_lines_the_first_are_named(tmp_path: Path) -> None:
    result = regrade(tmp_path, input="no record\n" * 50 + lines(outcome()))
    assert result.exit_code == 1
    named = [line for line in result.stderr.splitlines() if "bad-record" in line]
    assert len(named) == 21
    assert named[-1] == "error: <stdin>:21: 30 more lines cannot be read [bad-record]"


def test_a_torn_last_line_is_a_warning(tmp_path: Path) -> None:
    result = regrade(tmp_path, input=lines(outcome()) + '{"trajectory": {"output": "he')
    assert "warning: <stdin>:2: not valid JSON" in result.stderr
    assert "[torn-record]" in result.stderr
    assert result.exit_code == 0


def test_what_cannot_be_graded_is_passed_on(tmp_path: Path) -> None:
    failed = outcome(status="error", error="no agent", runId="old", itemId="x")
    skipped = outcome(status="skipped", skipReason="budget")
    result = regrade(tmp_path, "--output", "jsonl", input=lines(failed, outcome(status="ok"), skipped))
    first, graded, last, summary = records(result)
    assert (first, last) == (failed, skipped)
    assert graded["gradeResult"]["passed"]
    assert (summary["passed"], summary["totals"]["errors"], summary["totals"]["skipped"]) == (False, 1, 1)
    assert "not gradable: status error: no agent" in result.stderr
    assert result.exit_code == 0


def test_a_record_without_its_trajectory_is_an_error_and_keeps_its_grade(tmp_path: Path) -> None:
    grade = {"passed": True, "stimulusName": "greets"}
    result = regrade(tmp_path, "--output", "jsonl", input=lines({"trajectory": None, "gradeResult": grade}))
    assert records(result)[0] == {"trajectory": None, "gradeResult": grade}
    assert "error: <stdin>:1: the record holds no trajectory" in result.stderr
    assert result.exit_code == 1


def test_records_of_other_stimuli_are_left_out(tmp_path: Path) -> None:
    result = regrade(tmp_path, "--output", "jsonl", input=lines(outcome("nobody"), outcome(), outcome("nobody")))
    assert len(records(result)) == 2
    assert "warning: stimulus 'nobody' is not in the given specs: 2 records left out" in result.stderr
    assert result.exit_code == 0
    none = regrade(tmp_path, "--output", "jsonl", input=lines(outcome("nobody")))
    assert (none.exit_code, none.stdout) == (1, "")
    assert "error: no record matches a stimulus that is selected\n  stimuli: greets, talks" in none.stderr


@pytest.mark.parametrize("text", ["", "\n\n", lines({"type": "run-summary"}), lines({"type": "of-tomorrow"}), "[]"])
def test_nothing_to_grade(tmp_path: Path, text: str) -> None:
    result = regrade(tmp_path, input=text)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error: nothing to grade: the input holds no trajectory" in result.stderr


def test_of_several_lines_with_one_id_the_last_counts(tmp_path: Path) -> None:
    text = lines(outcome(output="no", itemId="i"), outcome(itemId="j"), outcome(output="hello again", itemId="i"))
    result = regrade(tmp_path, "--output", "jsonl", input=text)
    first, second, _ = records(result)
    assert (first["trajectory"]["output"], second["itemId"]) == ("hello again", "j")


@pytest.mark.parametrize("text", [json.dumps([outcome(), outcome()]), json.dumps([outcome(), outcome()], indent=2)])
def test_an_array_of_outcomes(tmp_path: Path, text: str) -> None:
    assert len(records(regrade(tmp_path, "--output", "jsonl", input=text))) == 3


def test_one_outcome_over_several_lines(tmp_path: Path) -> None:
    result = regrade(tmp_path, "--output", "jsonl", input=json.dumps(outcome(), indent=2))
    assert records(result)[0]["gradeResult"]["passed"]


@pytest.mark.parametrize(
    ("words", "count"), [(["--stimulus", "gr*"], 2), (["--tag", "area=b"], 1), (["--stimulus", "!greets"], 1), ([], 3)]
)
def test_records_can_be_chosen(tmp_path: Path, words: list[str], count: int) -> None:
    text = lines(outcome(), outcome(), outcome("talks"))
    assert len(records(regrade(tmp_path, "--output", "jsonl", *words, input=text))) == count + 1


def test_with_several_specs_the_eval_of_a_record_decides(tmp_path: Path) -> None:
    other = {"name": "other", "stimuli": [{"name": "greets", "prompt": "p", "graders": [{**CONTAINS, "name": "mine"}]}]}
    write_spec(tmp_path, other, "other.yaml")
    text = lines(outcome(evalName="other"), outcome(evalFilePath="eval.yaml"), outcome(), outcome(evalName="third"))
    result = regrade(tmp_path, "-e", "other.yaml", "--output", "jsonl", input=text)
    first, second, _ = records(result)
    assert first["gradeResult"]["details"][0]["name"] == "mine"
    assert second["gradeResult"]["details"][0]["name"] == "output-contains hello"
    assert "stimulus 'greets' is not in the given specs: 2 records left out" in result.stderr


@pytest.mark.parametrize(
    ("words", "outputs", "code"),
    [
        ([], ["no"], 0),
        (["--require-pass"], ["no"], 1),
        (["--require-pass"], ["hello"], 0),
        (["--require-pass", "--threshold", "0.5"], ["hello", "no"], 0),
        (["--require-pass", "--threshold", "0.6"], ["hello", "no"], 1),
    ],
)
def test_verdicts_and_exit_codes(tmp_path: Path, words: list[str], outputs: list[str], code: int) -> None:
    text = lines(*(outcome(output=output) for output in outputs))
    assert regrade(tmp_path, *words, input=text).exit_code == code


def test_a_grader_error_is_an_error(tmp_path: Path) -> None:
    spec = {"name": "demo", "stimuli": [{"name": "greets", "prompt": "p",
            "graders": [CONTAINS, {"type": "file-exists", "config": {"path": "a"}}]}]}  # fmt: skip
    record = outcome()
    # Whole, however long it is, because the cause of an error stands at its end.
    place = "/no" * 200 + "/such/place"
    record["trajectory"]["workDir"] = place
    result = regrade(tmp_path, input=lines(record), spec=spec)
    assert "⚠ greets (1/2 graders passed, 1 error(s))" in result.stdout
    assert f"  ⚠ [file-exists] Workspace is not accessible: {place}\n" in result.stdout
    assert result.stdout.endswith("Score: n/a | FAILED\n")
    assert result.exit_code == 1


def test_json_output(tmp_path: Path) -> None:
    result = regrade(tmp_path, "--output", "json", input=lines(outcome(), outcome(output="no")))
    document = json.loads(result.stdout)
    assert (document["type"], document["version"], document["exitCode"], document["passed"]) == (
        "grade-run",
        1,
        0,
        False,
    )
    assert "runDir" not in document
    (stimulus,) = document["evals"][0]["stimuli"]
    assert (stimulus["name"], stimulus["trials"], stimulus["passed"], stimulus["flaky"]) == ("greets", 2, 1, True)
    assert "━━━ greets" in result.stderr


def test_quiet_prints_the_verdict_alone(tmp_path: Path) -> None:
    assert regrade(tmp_path, "-q", input=lines(outcome())).stdout == "Score: 100.0% | PASSED\n"


def test_several_runs_of_one_trial_number_all_count(tmp_path: Path) -> None:
    text = lines(*(outcome(itemId=f"run-{n}", trialIndex=0, totalTrials=1) for n in range(3)))
    summary = records(regrade(tmp_path, "--output", "jsonl", input=text))[-1]
    assert (summary["totals"]["trials"], summary["totals"]["passed"]) == (3, 3)


def test_variants_and_models_have_verdicts_of_their_own(tmp_path: Path) -> None:
    text = lines(outcome(variant="a", model="m"), outcome(variant="b", model="m", output="x") | {"x": 1})
    text = text.replace('"output": "x"', '"output": "no"')
    summary = records(regrade(tmp_path, "--output", "jsonl", input=text))[-1]
    assert [(item["variant"], item["model"], item["passed"]) for item in summary["evals"]] == [
        ("a", "m", True),
        ("b", "m", False),
    ]


ATIF: dict[str, Any] = {
    "schema_version": "ATIF-v1.7",
    "agent": {"name": "coder", "version": "2", "model_name": "big"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "one"},
        {"step_id": 2, "source": "agent", "message": "first"},
        {"step_id": 3, "source": "user", "message": "two"},
        {"step_id": 4, "source": "agent", "message": "second"},
    ],
}


@pytest.mark.parametrize("indent", [None, 2])
def test_an_atif_document_is_graded_against_the_stimulus_of_its_prompts(tmp_path: Path, indent: int | None) -> None:
    (tmp_path / "t.json").write_text(json.dumps(ATIF, indent=indent))
    result = regrade(tmp_path, "t.json", "--output", "jsonl")
    record = records(result)[0]
    assert (record["type"], record["stimulus"], record["model"], record["status"]) == (
        "trial-result",
        "talks",
        "big",
        "success",
    )
    assert record["gradeResult"]["passed"]
    assert record["trajectory"]["importedFrom"] == {"format": "atif", "version": "1.7"}
    assert (record["regraded"], result.exit_code) == (True, 0)


def test_the_stimulus_of_a_document_can_be_named(tmp_path: Path) -> None:
    result = regrade(tmp_path, "--stimulus", "greets", "--output", "jsonl", input=json.dumps(ATIF))
    assert records(result)[0]["stimulus"] == "greets"


@pytest.mark.parametrize(("prompt", "words"), [("nothing alike", "no stimulus has its prompt"),
                                               ("say hello", "its prompt is that of several stimuli")])  # fmt: skip
def test_a_document_whose_stimulus_is_unclear(tmp_path: Path, prompt: str, words: str) -> None:
    spec = {"name": "demo", "stimuli": [{"name": name, "prompt": "say hello", "graders": [CONTAINS]} for name in "ab"]}
    document = {**ATIF, "steps": [{"step_id": 1, "source": "user", "message": prompt}]}
    result = regrade(tmp_path, input=json.dumps(document), spec=spec)
    assert f"error: <stdin>: {words}" in result.stderr
    assert "  give --stimulus: a, b" in result.stderr
    assert result.exit_code == 1


def test_a_wrong_document_is_named_by_its_path(tmp_path: Path) -> None:
    steps = [ATIF["steps"][0], {**ATIF["steps"][1], "step_id": 3}]
    (tmp_path / "t.json").write_text(json.dumps({**ATIF, "steps": steps}))
    result = regrade(tmp_path, "t.json")
    assert "error: t.json: ATIF validation: steps[1].step_id must be 2" in result.stderr
    assert result.exit_code == 1


def session(*events: tuple[str, dict[str, Any]]) -> str:
    start = ("session.start", {"sessionId": "s", "selectedModel": "gpt-x"})
    return lines(*({"type": kind, "id": str(n), "data": data} for n, (kind, data) in enumerate([start, *events])))


TALK = [
    ("user.message", {"content": "say hello"}),
    ("assistant.turn_start", {"turnId": "0"}),
    ("assistant.message", {"content": "hello"}),
    ("assistant.turn_end", {"turnId": "0"}),
]


def test_a_session_directory(tmp_path: Path) -> None:
    (tmp_path / "session").mkdir()
    (tmp_path / "session" / "events.jsonl").write_text(session(*TALK) + '{"torn')
    result = regrade(tmp_path, "session", "--output", "jsonl")
    record = records(result)[0]
    assert (record["stimulus"], record["model"], record["gradeResult"]["passed"]) == ("greets", "gpt-x", True)
    assert record["trajectory"]["metadata"]["executor"] == "copilot-cli"
    assert "warning: session: line 6 is skipped: " in result.stderr
    assert result.exit_code == 0


def test_a_session_without_a_prompt_is_refused(tmp_path: Path) -> None:
    result = regrade(tmp_path, input=session())
    assert "error: <stdin>: session has no user message" in result.stderr
    assert result.exit_code == 1


def test_files_are_looked_for_in_the_given_workspace(tmp_path: Path) -> None:
    spec = {"name": "demo", "stimuli": [{"name": "talks", "turns": ["one", "two"],
            "graders": [{"type": "file-exists", "config": {"path": "made.txt"}}]}]}  # fmt: skip
    work = tmp_path / "work"
    work.mkdir()
    (work / "made.txt").touch()
    given = regrade(tmp_path, "--workspace", "work", "--output", "jsonl", input=json.dumps(ATIF), spec=spec)
    here = regrade(tmp_path, "--output", "jsonl", input=json.dumps(ATIF), spec=spec)
    assert [records(item)[0]["gradeResult"]["passed"] for item in (given, here)] == [True, False]


DIFF_SPEC = {"name": "demo", "stimuli": [{"name": "greets", "prompt": "p",
             "graders": [{"type": "diff-contains", "config": {"value": "+new"}}]}]}  # fmt: skip


def with_trajectory(**fields: Any) -> str:
    record = outcome()
    record["trajectory"] |= fields
    return lines(record)


def evidence(result: CliResult) -> str:
    text: str = records(result)[0]["gradeResult"]["details"][0]["evidence"]
    return text


def test_side_files_are_found_in_the_run_directory(tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    (moved / "e").mkdir(parents=True)
    (moved / "e" / "workspace.diff").write_text("+new\n")
    (moved / "results.jsonl").write_text(with_trajectory(diffPath="e/workspace.diff"))
    found = regrade(tmp_path, "moved/results.jsonl", "--output", "jsonl", spec=DIFF_SPEC)
    by_directory = regrade(tmp_path, "moved", "--output", "jsonl", spec=DIFF_SPEC)
    piped = (moved / "results.jsonl").read_text()
    given = regrade(tmp_path, "--run-dir", "moved", "--output", "jsonl", input=piped, spec=DIFF_SPEC)
    lost = regrade(tmp_path, "--output", "jsonl", input=piped, spec=DIFF_SPEC)
    assert {evidence(item) for item in (found, by_directory, given)} == {"'+new' found in workspace diff"}
    assert evidence(lost).endswith("The diff file 'e/workspace.diff' cannot be read.")


def test_a_diff_can_be_given_for_what_recorded_none(tmp_path: Path) -> None:
    (tmp_path / "my.diff").write_text("+new\n")
    words = ("--diff-file", "my.diff", "--output", "jsonl")
    assert evidence(regrade(tmp_path, *words, input=with_trajectory(), spec=DIFF_SPEC)).startswith("'+new' found")
    recorded = regrade(tmp_path, *words, input=with_trajectory(diff="+old"), spec=DIFF_SPEC)
    assert evidence(recorded).startswith("'+new' NOT found")
    several = regrade(tmp_path, *words, input=lines(outcome(), outcome()), spec=DIFF_SPEC)
    assert several.exit_code == 1
    assert "error: --diff-file: is for a single trajectory" in several.stderr


@pytest.mark.parametrize("option", ["--workspace", "--run-dir", "--artifact-dir", "--diff-file"])
def test_places_that_do_not_exist(tmp_path: Path, option: str) -> None:
    result = regrade(tmp_path, option, "nowhere", input=lines(outcome()))
    assert result.exit_code == 1
    assert f"error: {option}: " in result.stderr


def test_artifacts_are_found_in_a_moved_run_directory(tmp_path: Path) -> None:
    spec = {"name": "demo", "stimuli": [{"name": "greets", "prompt": "p",
            "graders": [{"type": "file-contains", "config": {"path": "o.txt", "value": "ok"}}]}]}  # fmt: skip
    trial = tmp_path / "moved" / "demo" / "greets" / "m" / "0"
    (trial / "artifacts").mkdir(parents=True)
    (trial / "artifacts" / "o.txt").write_text("ok")
    for recorded in ("/gone/2026/demo/greets/m/0/artifacts", "demo/greets/m/0/artifacts"):
        text = with_trajectory(artifactDir=recorded, artifactDirStrict=True)
        result = regrade(tmp_path, "--run-dir", "moved", "--output", "jsonl", input=text, spec=spec)
        assert evidence(result) == "'ok' found in o.txt"
    given = regrade(tmp_path, "--artifact-dir", str(trial / "artifacts"), "--output", "jsonl",
                    input=with_trajectory(), spec=spec)  # fmt: skip
    assert evidence(given) == "'ok' found in o.txt"


def test_a_cut_trajectory_is_completed_from_its_side_file(tmp_path: Path) -> None:
    text = with_trajectory(truncated=True, trajectoryPath="t/trajectory.json", output="he")
    (tmp_path / "run" / "t").mkdir(parents=True)
    (tmp_path / "run" / "t" / "trajectory.json").write_text(json.dumps({"output": "hello there"}))
    whole = regrade(tmp_path, "--run-dir", "run", input=text)
    cut = regrade(tmp_path, input=text)
    assert "✅" in whole.stdout
    assert "graded-truncated-trajectory" not in whole.stderr
    assert "❌" in cut.stdout
    assert "warning: <stdin>:1: the trajectory was cut" in cut.stderr


@pytest.mark.parametrize("depth", [900, 5000])
def test_arguments_nested_deeply(tmp_path: Path, depth: int) -> None:
    nested = '{"a":' * depth + "1" + "}" * depth
    event = '{"type":"tool_call","data":{"toolName":"t","arguments":' + nested + "}}"
    record = '{"trajectory":{"stimulus":{"name":"greets"},"output":"hello","events":[' + event + "]}}"
    graders = [CONTAINS, {"type": "tool-calls", "config": {"required": [{"name": "t", "pattern": "1"}]}},
               {"type": "max-repeat", "config": {"max": 1, "match": "name-args"}}]  # fmt: skip
    spec = {"name": "demo", "stimuli": [{"name": "greets", "prompt": "p", "graders": graders}]}
    result = regrade(tmp_path, "--output", "jsonl", input=record + "\n" + lines(outcome()), spec=spec)
    if "nested too deeply" in result.stderr:
        assert depth > 900
        assert result.exit_code == 1
    else:
        assert records(result)[0]["gradeResult"]["passed"]


def test_reporters_of_plugins_listen(tmp_path: Path) -> None:
    heard: list[Any] = []

    class Listens:
        def on_run_start(self, event: RunStart) -> None:
            heard.append((event.kind, event.total_items, event.run_dir.is_dir()))

        def on_trial_result(self, event: TrialDone) -> None:
            heard.append((event.item.stimulus.name, event.passed, json.loads(event.line)["regraded"]))

        def on_run_complete(self, event: RunComplete) -> None:
            (event.run_dir / "mine.txt").write_text("report")
            heard.append((event.summary.totals.trials, (event.run_dir / "results.jsonl").is_file()))

    plugin = ReporterSpec(name="listens", summary="listens", factory=Listens)
    result = regrade(tmp_path, input=lines(outcome(), outcome(output="no")), plugins=[plugin])
    assert heard == [("grade", 2, True), ("greets", True, True), ("greets", False, True), (2, True)]
    (kept,) = [line.removeprefix("Reports: ") for line in result.stderr.splitlines() if line.startswith("Reports: ")]
    assert (Path(kept) / "mine.txt").read_text() == "report"
    for file in Path(kept).iterdir():
        file.unlink()
    Path(kept).rmdir()


def test_secrets_of_this_process_do_not_get_into_the_output(tmp_path: Path) -> None:
    command = {"type": "run-command", "config": {"command": "echo $MY_TOKEN"}}
    spec = {"name": "demo", "stimuli": [{"name": "greets", "prompt": "p", "graders": [command]}]}
    result = regrade(tmp_path, "--output", "jsonl", input=with_trajectory(workDir=str(tmp_path)), spec=spec,
                     env={"MY_TOKEN": "correct-horse-battery"})  # fmt: skip
    assert "<redacted:MY_TOKEN>" in result.stdout
    assert "correct-horse" not in result.stdout + result.stderr


def command(root: Path, *words: str, **streams: Any) -> subprocess.Popen[bytes]:
    write_spec(root, streams.pop("spec", SPEC))
    environ = {"PATH": os.environ["PATH"], "HOME": str(root), "VALLY_CACHE_DIR": str(root / "cache")}
    return subprocess.Popen(
        [sys.executable, "-m", "vally", "grade", "-e", "eval.yaml", *words], cwd=root, env=environ, **streams
    )


def test_a_closed_stdout_ends_it_quietly(tmp_path: Path) -> None:
    (tmp_path / "many.jsonl").write_text(lines(*(outcome(output="hello " * 200) for _ in range(500))))
    process = command(tmp_path, "many.jsonl", "--output", "jsonl", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 141


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_and_the_commands_of_graders(tmp_path: Path, number: signal.Signals, code: int) -> None:
    grader = {"type": "run-command", "config": {"command": "echo $$ > pid; echo up > up; sleep 600", "timeout": "10m"}}
    spec = {"name": "demo", "stimuli": [{"name": "greets", "prompt": "p", "graders": [grader]}]}
    os.mkfifo(tmp_path / "up")
    (tmp_path / "one.jsonl").write_text(with_trajectory(workDir=str(tmp_path)))
    process = command(tmp_path, "one.jsonl", spec=spec, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    (tmp_path / "up").read_text()
    pid = int((tmp_path / "pid").read_text())
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors.decode()
    assert b"Traceback" not in errors
    ends(pid)


def usage_cases() -> Sequence[tuple[list[str], str]]:
    return [
        (["in.jsonl"], "missing option"),
        (["-e", "eval.yaml", "--output", "yaml"], "--output"),
        (["-e", "eval.yaml", "--workers", "0"], "--workers"),
        (["-e", "eval.yaml", "--threshold", "2"], "--threshold"),
        (["-e", "eval.yaml", "--run-id", "a b"], "--run-id"),
        (["-e", "eval.yaml", "--executor", "mock"], "--executor"),
        (["-e", "eval.yaml", "--tag", "area"], "--tag"),
    ]


@pytest.mark.parametrize(("words", "problem"), usage_cases())
def test_wrong_usage(tmp_path: Path, words: list[str], problem: str) -> None:
    write_spec(tmp_path)
    result = run_cli(["grade", *words], cwd=tmp_path, input=lines(outcome()))
    assert (result.exit_code, result.stdout) == (2, "")
    assert problem in result.stderr


@pytest.mark.parametrize(
    ("name", "problem"), [("none.jsonl", "No such file"), ("empty", "holds neither results.jsonl")]
)
def test_inputs_that_are_not_there(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "good.jsonl").write_text(lines(outcome()))
    alone = regrade(tmp_path, name)
    assert (alone.exit_code, alone.stdout) == (1, "")
    assert f"error: {name}: " in alone.stderr
    assert problem in alone.stderr
    beside = regrade(tmp_path, name, "good.jsonl")
    assert (beside.exit_code, "✅" in beside.stdout) == (1, True)


def test_help_imports_no_model_library(tmp_path: Path) -> None:
    code = "import sys; from vally.cli.program import run; run(['grade', '--help']); print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.splitlines()[-1] == "False"


class SeedTeller:
    """Says which seed it was given."""

    def grade(self, input: GraderInput[Any]) -> GraderResult:
        return GraderResult.verdict(True, f"seed {input.seed}")


def test_graders_get_the_seed_of_the_run_again(tmp_path: Path) -> None:
    teller = GraderSpec(name="seed-teller", summary="Says its seed", factory=SeedTeller)
    spec = {"name": "demo", "defaults": {"executor": "mock", "runs": 2}}
    spec["stimuli"] = [{"name": "greets", "prompt": "hello", "graders": [{"type": "seed-teller"}]}]
    write_spec(tmp_path, spec)
    ran = run_cli(["eval", "-e", "eval.yaml", "--seed", "7", "--output", "jsonl"], cwd=tmp_path, plugins=(teller,))
    result = regrade(tmp_path, "--output", "jsonl", input=ran.stdout, spec=spec, plugins=(teller,))
    for told in (records(ran), records(result)):
        evidence = {item["trialIndex"]: item["gradeResult"]["details"][0]["evidence"] for item in told[:2]}
        assert evidence == {item["trialIndex"]: f"seed {item['seed']}" for item in told[:2]}
    odd = lines(outcome(seed="seven"), outcome(seed=True), outcome(seed=8))
    told = records(regrade(tmp_path, "--output", "jsonl", input=odd, spec=spec, plugins=(teller,)))[:3]
    evidence_of_odd = [item["gradeResult"]["details"][0]["evidence"] for item in told]
    assert evidence_of_odd == ["seed None", "seed None", "seed 8"]
