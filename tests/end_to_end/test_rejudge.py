"""`vally rejudge`: only what judges left open is asked again, and the file is replaced as a whole."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from vally import (
    BackendSpec,
    JudgeError,
    JudgeRequest,
    Record,
    ReporterOption,
    ReporterSpec,
    RunComplete,
    RunStart,
    timestamp,
)
from vally.testing import CliResult, ProjectBuilder, ScriptedJudge, run_cli

BY_SCRIPT = {"judge_provider": {"type": "scripted"}, "judge_model": "m1"}
SAID = {"type": "output-contains", "config": {"substring": "hello"}}
PROMPT = {"type": "prompt", "config": {"prompt": "Is it good?"}}
PANEL = {"type": "panel", "config": {"prompt": "Is it good?", "models": ["m1", "m2", "m3"]}}
Answers = Callable[[JudgeRequest], Any]


def grade(score: float) -> dict[str, Any]:
    """A judge's answer on its scale from 1 to 5 for a score of 0..1."""
    raw = 1 + 4 * score
    scores = [{"criterion": "It is good.", "score": raw, "reasoning": "because"}]
    return {"overall_score": raw, "overall_reasoning": f"gave {raw}", "rubric_scores": scores}


def failing(_: JudgeRequest) -> Any:
    return JudgeError("nobody answers", kind="transport")


def only(*models: str, score: float = 1.0) -> Answers:
    """A judge that answers for some models."""
    return lambda request: grade(score) if request.model in models else JudgeError("down", kind="transport")


class Subject:
    """A project with one eval, its run, and the commands."""

    def __init__(self, root: Path) -> None:
        self.project = ProjectBuilder(root)
        self.requests: list[JudgeRequest] = []
        self.reporters: list[Record] = []

    def eval(self, stimuli: list[Mapping[str, Any]], *words: str, answers: Answers, **keys: Any) -> CliResult:
        self.project.eval("e", stimuli, defaults={"executor": "mock", **BY_SCRIPT}, **keys)
        return self.run(["eval", "-e", "evals/e/eval.yaml", "--output-dir", "out", "--junit", *words], answers)

    def run(self, words: list[str], answers: Answers) -> CliResult:
        judge = ScriptedJudge(answers)
        record = judge.record("scripted", provider_types=("scripted",))
        result = run_cli(words, cwd=self.project.root, plugins=(record, *self.reporters))
        self.requests = judge.requests
        assert "Traceback" not in result.stderr
        assert "internal error" not in result.stderr
        return result

    def rejudge(self, *words: str, answers: Answers) -> CliResult:
        return self.run(["rejudge", self.run_dir.relative_to(self.project.root).as_posix(), *words], answers)

    @property
    def run_dir(self) -> Path:
        (found,) = (self.project.root / "out").iterdir()
        return found

    @property
    def results(self) -> Path:
        return self.run_dir / "results.jsonl"

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.results.read_text().splitlines()]


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    return Subject(tmp_path)


def stimulus(name: str, *graders: Mapping[str, Any], prompt: str = "say hello") -> dict[str, Any]:
    return {"name": name, "prompt": prompt, "rubric": ["It is good."], "graders": list(graders)}


def test_only_what_failed_is_asked_again(subject: Subject) -> None:
    def one_of_two(request: JudgeRequest) -> Any:
        return failing(request) if "bad" in request.user_message else grade(1)

    stimuli = [
        stimulus("fine", SAID, PROMPT, prompt="hello fine"),
        stimulus("open", SAID, PROMPT, prompt="hello bad"),
    ]
    assert subject.eval(stimuli, answers=one_of_two).exit_code == 1
    before, former = subject.records, subject.results.read_bytes()
    result = subject.rejudge(answers=only("m1"))
    assert result.exit_code == 0, result.stderr
    assert len(subject.requests) == 1
    assert "✔ open   prompt" in result.stdout
    assert "1 verdict of 1 found, 0 still without; passed" in result.stdout
    after = {record.get("stimulus"): record for record in subject.records}
    by_name = {record.get("stimulus"): record for record in before}
    assert after["fine"] == by_name["fine"]
    changed = after["open"]["gradeResult"]
    assert (changed["passed"], changed["evidence"]) == (True, "2/2 graders passed")
    assert "status" not in changed
    assert changed["details"][0] == by_name["open"]["gradeResult"]["details"][0]
    assert changed["details"][1]["name"] == by_name["open"]["gradeResult"]["details"][1]["name"]
    assert after["open"]["trajectory"] == by_name["open"]["trajectory"]
    assert after["open"]["judgeUsage"]["callCount"] == by_name["open"]["judgeUsage"]["callCount"] + 1
    summary = after[None]
    assert (summary["passed"], summary["hadExecutionErrors"], summary["totals"]["errors"]) == (True, False, 0)
    for key in ("runId", "startedAt", "completedAt", "status", "durationMs"):
        assert summary[key] == by_name[None][key]
    assert (subject.run_dir / "results.jsonl.prev").read_bytes() == former
    assert "✅ PASSED" in (subject.run_dir / "eval-results.md").read_text()
    assert 'errors="0"' in (subject.run_dir / "eval-results.junit.xml").read_text().splitlines()[1]
    assert not (subject.run_dir / ".lock").exists()


class Errors:
    """A reporter of somebody else; it writes how many errors there were, and rings only when asked."""

    rings = 0

    def on_run_start(self, event: RunStart) -> None:
        Errors.rings += bool(event.options.flags["bell"])

    def on_run_complete(self, event: RunComplete) -> dict[str, Path]:
        path = event.run_dir / "errors.txt"
        path.write_text(f"{event.summary.totals.errors}\n")
        return {"Errors": path}


def test_files_of_any_reporter_are_written_anew_and_shown(subject: Subject) -> None:
    option = ReporterOption(name="bell", help="Ring")
    record = ReporterSpec(
        name="errors", summary="errors", factory=Errors, options=(option,), files={"Errors": "errors.txt"}
    )
    subject.reporters.append(record)
    subject.eval([stimulus("s", PROMPT, prompt="hello")], "--bell", answers=failing)
    spans = (subject.run_dir / "otel-spans.jsonl").read_bytes()
    assert ((subject.run_dir / "errors.txt").read_text(), Errors.rings) == ("1\n", 1)
    assert subject.rejudge(answers=only("m1")).exit_code == 0
    assert ((subject.run_dir / "errors.txt").read_text(), Errors.rings) == ("0\n", 1)
    assert (subject.run_dir / "otel-spans.jsonl").read_bytes() != spans
    shown = subject.run(["show", subject.run_dir.relative_to(subject.project.root).as_posix()], failing).stdout
    saved = shown[shown.index("Saved artifacts") :].splitlines()[1:]
    assert [line.split()[0] for line in saved if "→" in line] == ["JSONL", "Markdown", "JUnit", "Spans", "Errors"]


def test_a_report_that_is_written_anew_still_says_where_the_run_was(subject: Subject) -> None:
    local = "vally_backend_local:LocalBackend"
    subject.reporters.append(BackendSpec(name="elsewhere", summary="as here", factory=local))
    subject.eval([stimulus("s", PROMPT, prompt="hello")], "--backend", "elsewhere", answers=failing)
    report = subject.run_dir / "eval-results.md"
    before = report.read_text()
    assert "- Executor: mock · Backend: elsewhere\n" in before
    assert subject.rejudge(answers=only("m1")).exit_code == 0
    assert report.read_text() != before
    assert "· Backend: elsewhere\n" in report.read_text()


def test_a_file_of_a_reporter_that_is_gone_stays_gone(subject: Subject) -> None:
    subject.eval([stimulus("s", PROMPT, prompt="hello")], answers=failing)
    (subject.run_dir / "eval-results.md").unlink()
    assert subject.rejudge(answers=only("m1")).exit_code == 0
    assert not (subject.run_dir / "eval-results.md").exists()
    assert (subject.run_dir / "eval-results.junit.xml").exists()


def test_the_members_of_a_panel_that_failed(subject: Subject) -> None:
    assert subject.eval([stimulus("s", PANEL)], answers=only("m1", score=0.5)).exit_code == 1
    result = subject.rejudge(answers=only("m2", "m3", score=1.0))
    assert result.exit_code == 0, result.stdout + result.stderr
    assert sorted(request.model for request in subject.requests) == ["m2", "m3"]
    (panel,) = subject.records[0]["gradeResult"]["details"]
    assert {item["name"]: item["score"] for item in panel["details"]} == {
        "panel/m1": 0.5,
        "panel/m2": 1.0,
        "panel/m3": 1.0,
    }
    assert panel["metadata"]["scores"] == {"m1": 0.5, "m2": 1.0, "m3": 1.0}
    assert panel["score"] == pytest.approx(2.5 / 3)


def test_a_panel_in_which_one_still_fails(subject: Subject) -> None:
    subject.eval([stimulus("s", PANEL)], answers=only("m1"))
    result = subject.rejudge(answers=only("m2"))
    assert result.exit_code == 1
    assert "0 verdicts of 1 found, 1 still without" in result.stdout
    (panel,) = subject.records[0]["gradeResult"]["details"]
    assert {item["name"]: item.get("status") for item in panel["details"]} == {
        "panel/m1": None,
        "panel/m2": None,
        "panel/m3": "error",
    }


def test_a_judge_that_fails_again_leaves_the_error(subject: Subject) -> None:
    subject.eval([stimulus("s", SAID, PROMPT)], answers=failing)
    result = subject.rejudge(answers=failing)
    assert result.exit_code == 1
    assert "⚠ s   prompt" in result.stdout
    assert subject.records[0]["gradeResult"]["status"] == "error"


def test_nothing_open_changes_nothing(subject: Subject) -> None:
    subject.eval([stimulus("s", SAID, PROMPT)], answers=only("m1"))
    before = subject.results.read_bytes()
    result = subject.rejudge(answers=failing)
    assert (result.exit_code, result.stdout) == (0, "no judge ended with an error\n")
    assert subject.results.read_bytes() == before
    assert not (subject.run_dir / "results.jsonl.prev").exists()


def test_errors_of_other_graders_stay(subject: Subject) -> None:
    broken = {"type": "run-command", "config": {"command": "no-such-program-anywhere", "timeout": "1ms"}}
    subject.eval([stimulus("s", broken, PROMPT)], answers=failing)
    other = subject.records[0]["gradeResult"]["details"][0]
    subject.rejudge(answers=only("m1"))
    assert subject.records[0]["gradeResult"]["details"][0] == other


def test_weights_and_required_graders_count_as_before(subject: Subject) -> None:
    graders = [
        {**SAID, "weight": 3},
        {**PROMPT, "required": True, "weight": 1},
    ]
    subject.eval([stimulus("s", *graders)], answers=failing, scoring={"threshold": 0.5})
    subject.rejudge(answers=only("m1", score=0.0))
    grade_result = subject.records[0]["gradeResult"]
    assert grade_result["score"] == pytest.approx(0.75)
    assert grade_result["metadata"]["requiredPassed"] is False
    assert subject.records[-1]["evals"][0]["passed"] is False


def test_other_models_and_machine_output(subject: Subject) -> None:
    subject.eval([stimulus("s", PROMPT)], answers=failing)
    result = subject.rejudge("--judge-model", "m9", "--output", "json", answers=only("m9"))
    document = json.loads(result.stdout)
    assert (document["type"], document["exitCode"], document["passed"]) == ("rejudge-run", 0, True)
    assert [(slot["status"], slot["passed"]) for slot in document["slots"]] == [("success", True)]
    assert [request.model for request in subject.requests] == ["m9"]


def test_jsonl_prints_the_changed_records_and_the_summary(subject: Subject) -> None:
    subject.eval([stimulus("s", PROMPT), stimulus("t", SAID)], answers=failing)
    result = subject.rejudge("--output", "jsonl", answers=only("m1"))
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line.get("stimulus") for line in lines] == ["s", None]
    assert lines[1]["type"] == "run-summary"


def test_require_pass(subject: Subject) -> None:
    subject.eval([stimulus("s", PROMPT)], answers=failing)
    assert subject.rejudge(answers=only("m1", score=0.0)).exit_code == 0
    assert subject.rejudge("--require-pass", answers=failing).exit_code == 1


def test_a_spec_that_is_gone(subject: Subject) -> None:
    subject.eval([stimulus("s", PROMPT)], answers=failing)
    path = subject.project.root / "evals" / "e" / "eval.yaml"
    path.rename(path.with_name("moved.yaml"))
    gone = subject.rejudge(answers=failing)
    assert gone.exit_code == 1
    assert "evals/e/eval.yaml is not there any more" in gone.stderr
    assert "name it with --eval-spec" in gone.stderr
    assert subject.rejudge("-e", "evals/e/moved.yaml", answers=only("m1")).exit_code == 0


def test_a_grader_that_is_gone_stays_an_error(subject: Subject) -> None:
    subject.eval([stimulus("s", SAID, PROMPT)], answers=failing)
    subject.project.eval("e", [stimulus("s", SAID)], defaults={"executor": "mock", **BY_SCRIPT})
    result = subject.rejudge(answers=only("m1"))
    assert result.exit_code == 1
    assert "the grader is not in the given specs" in result.stdout


def test_a_run_that_goes_on_is_left_alone(subject: Subject) -> None:
    subject.eval([stimulus("s", PROMPT)], answers=failing)
    holder = {"host": platform.node(), "pid": os.getpid(), "startedAt": timestamp()}
    (subject.run_dir / ".lock").write_text(json.dumps(holder))
    locked = subject.rejudge(answers=only("m1"))
    assert locked.exit_code == 1
    assert f"error: out/{subject.run_dir.name}/.lock: the run directory is in use by process" in locked.stderr
    (subject.run_dir / ".lock").unlink()
    lines = subject.results.read_bytes().splitlines(keepends=True)
    subject.results.write_bytes(b"".join(lines[:-1]))
    unfinished = subject.rejudge(answers=only("m1"))
    assert unfinished.exit_code == 1
    assert "the run has no summary" in unfinished.stderr
    assert subject.results.read_bytes() == b"".join(lines[:-1])
    assert not (subject.run_dir / ".lock").exists()


def test_an_experiment(subject: Subject) -> None:
    subject.project.eval("e", [stimulus("s", PROMPT)], defaults={"executor": "mock", **BY_SCRIPT})
    variants = {"base": {}, "other": {"overrides": {"model": "x"}}}
    file = subject.project.experiment(variants=variants, vary=["/defaults/model"], baseline="base")
    made = subject.run(["experiment", "run", file.name, "--output-dir", "out"], failing)
    assert made.exit_code == 1
    result = subject.rejudge(answers=only("m1"))
    assert result.exit_code == 0, result.stdout + result.stderr
    assert "2 verdicts of 2 found" in result.stdout
    summary = json.loads((subject.run_dir / "experiment-summary.json").read_text())
    assert (summary["passed"], summary["hadExecutionErrors"]) == (True, False)
    assert [variant["passed"] for variant in summary["variants"]] == [True, True]


def test_a_contaminated_variant_is_not_passed_by_a_judge(subject: Subject) -> None:
    subject.project.eval("e", [stimulus("s", PROMPT)], defaults={"executor": "mock", **BY_SCRIPT})
    variants = {"base": {}, "other": {"overrides": {"model": "x"}}}
    file = subject.project.experiment(variants=variants, vary=["/defaults/model"], baseline="base")
    subject.run(["experiment", "run", file.name, "--output-dir", "out"], failing)
    path = subject.run_dir / "experiment-summary.json"
    found = {"variant": "other", "evalFile": "e.yaml", "model": "x", "reasons": ["skill 'leak'"]}
    path.write_text(json.dumps({**json.loads(path.read_text()), "contaminated": [found]}))
    subject.rejudge(answers=only("m1"))
    summary = json.loads(path.read_text())
    assert (summary["passed"], [variant["passed"] for variant in summary["variants"]]) == (False, [True, False])


def test_lines_tell_apart_trials_that_differ_in_their_model_alone(subject: Subject) -> None:
    subject.eval([stimulus("s", PROMPT)], "--model", "small,large", "--runs", "2", answers=failing)
    lines = subject.rejudge(answers=only("m1")).stdout.splitlines()
    named = {line.split("   ")[0] for line in lines if line.startswith("✔")}
    assert named == {f"✔ s #{number}/2 ({model})" for number in (1, 2) for model in ("small", "large")}


def test_lines_tell_apart_trials_that_differ_in_their_eval_alone(subject: Subject) -> None:
    subject.project.eval("other", [stimulus("s", PROMPT)], defaults={"executor": "mock", **BY_SCRIPT})
    subject.eval([stimulus("s", PROMPT)], "-e", "evals/other/eval.yaml", answers=failing)
    lines = subject.rejudge(answers=only("m1")).stdout.splitlines()
    assert sorted(line.split("   ")[0] for line in lines if line.startswith("✔")) == ["✔ e / s", "✔ other / s"]
