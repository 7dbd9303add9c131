"""Annotations: which there are, where they point, and that no text breaks out of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vally import Diagnostic, GraderResult
from vally.testing import ScriptedRun, trial_result
from vally_reporter_github.reporter import GithubReporter

Tell = Callable[..., Any]
Grader = Callable[..., GraderResult]
FINDING = "::warning title=no-graders::a finding [no-graders]"
HOSTILE = "50%\r\n::error::x \x1b[31m\x00 ##[error]y\u2028z"


def place(stimulus: str, line: int = 3, name: str = "scripted", file: str = "eval.yaml") -> str:
    return f"file={file},line={line},title={name} / {stimulus}"


def test_a_run_that_passes_has_no_annotations_but_findings(tell: Tell, grader: Grader) -> None:
    assert tell(trial_result("s", grader("g"))).lines == [FINDING]


def test_failing_stimuli_are_warnings(tell: Tell, grader: Grader) -> None:
    results = [
        trial_result("s", grader("h"), grader("g", False, "not seen"), trial_index=1, total_trials=2),
        trial_result("s", grader("g"), trial_index=0, total_trials=2),
    ]
    assert tell(*results).lines == [
        f"::warning {place('s')}::1 of 2 trials passed, score 0.75%0Ag: not seen",
        FINDING,
    ]


def test_the_first_trial_in_plan_order_tells_why(tell: Tell, grader: Grader) -> None:
    results = [
        trial_result("s", grader("g", False, f"e{index}"), trial_index=index, total_trials=3) for index in (2, 0, 1)
    ]
    assert "%0Ag: e0" in tell(*results).lines[0]


def test_failing_stimuli_are_errors_when_passing_is_required(tell: Tell, grader: Grader) -> None:
    lines = tell(trial_result("s", grader("g", False, "not seen")), require_pass=True).lines
    assert lines == [f"::error {place('s')}::0 of 1 trial passed, score 0.00%0Ag: not seen", FINDING]


def test_errors(tell: Tell, grader: Grader) -> None:
    nested = grader("panel", True, "2 of 3", details=[grader("judge a", None, "timed out")])
    lines = tell(
        trial_result("a", status="error", error="the provider is down", trial_index=0, total_trials=2),
        trial_result("a", status="error", error="down again", trial_index=1, total_trials=2),
        trial_result("b", grader("g", None, "no judge")),
        trial_result("c", nested),
        trial_result("d", status="skipped", skip_reason="no browser"),
    ).lines
    # The first error of each stimulus comes before further ones.
    assert lines == [
        f"::error {place('a')}::trial 1/2: the provider is down",
        f"::error {place('b', 4)}::grader g: no judge",
        f"::error {place('c', 5)}::grader judge a: timed out",
        f"::error {place('a')}::trial 2/2: down again",
        FINDING,
    ]


def test_long_errors_are_cut_before_their_cause(tell: Tell, grader: Grader) -> None:
    error = "why " * 1_000 + "the cause"
    first, second, _ = tell(
        trial_result("a", status="error", error=error), trial_result("b", grader("g", None, error))
    ).lines
    for line in (first, second):
        assert "…" in line
        assert line.endswith("the cause")
        assert len(line) < 2_200


@pytest.mark.parametrize("require_pass", [False, True])
def test_there_are_at_most_ten_per_level(tell: Tell, grader: Grader, require_pass: bool) -> None:
    broken = [trial_result(f"e{index}", status="error", error="down") for index in range(15)]
    failed = [trial_result(f"f{index}", grader("g", False)) for index in range(15)]
    lines = tell(*broken, *failed, require_pass=require_pass).lines
    errors = [line for line in lines if line.startswith("::error ")]
    warnings = [line for line in lines if line.startswith("::warning ")]
    assert len(lines) == len(errors) + len(warnings)
    assert len(errors) == 10
    assert all(line.endswith("::down") for line in errors)
    assert len(warnings) == (1 if require_pass else 10)


def test_errors_leave_room_for_failures(tell: Tell, grader: Grader) -> None:
    results = [trial_result("e", status="error", error="down"), trial_result("f", grader("g", False))]
    lines = tell(*results, require_pass=True).lines
    assert [line.split(" ")[0] for line in lines] == ["::error", "::error", "::warning"]


def test_no_text_breaks_out(tell: Tell, grader: Grader) -> None:
    told = tell(
        trial_result(HOSTILE, grader(HOSTILE, False, HOSTILE), eval_name=HOSTILE, model=HOSTILE),
        trial_result("e", status="error", error=HOSTILE, eval_name=HOSTILE, model=HOSTILE),
    )
    name, text = "50%25 %3A%3Aerror%3A%3Ax ##[error]y z", "50%25%0A::error::x  ##[error]y z"
    assert told.lines == [
        f"::error file=eval.yaml,line=4,title={name} / e::{text}",
        f"::warning file=eval.yaml,line=3,title={name} / {name}::0 of 1 trial passed, score 0.00%0A"
        "50%25 ::error::x ##[error]y z: 50%25 ::error::x ##[error]y z",
        FINDING,
    ]


def test_credentials_are_hidden(tell: Tell) -> None:
    token = "ghp_" + "a1" * 15
    lines = tell(trial_result("e", status="error", error=f"401 with {token}")).lines
    assert lines[0].endswith("::401 with <redacted>")


def test_several_models_are_named(tell: Tell, grader: Grader) -> None:
    lines = tell(*(trial_result("s", grader("g", False), model=model) for model in ("x", "y"))).lines
    assert [line.split("::")[2].split("%0A")[0] for line in lines[:2]] == [
        "0 of 1 trial passed, score 0.00 with x",
        "0 of 1 trial passed, score 0.00 with y",
    ]


def test_several_variants_are_named(tell: Tell, grader: Grader) -> None:
    told = tell(*(trial_result("s", grader("g", False), variant=variant) for variant in ("x", "y")))
    assert [line.split("::")[2].split("%0A")[0] for line in told.lines[:2]] == [
        "0 of 1 trial passed, score 0.00 in x",
        "0 of 1 trial passed, score 0.00 in y",
    ]
    assert "| scripted / y (default-model) | s | 0/1 |" in told.summary


def test_files_are_named_from_the_checkout(tmp_path: Path, grader: Grader) -> None:
    environ = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path)}
    result = trial_result("s", grader("g", False), eval_file_path="evals/a.yaml")
    (tmp_path / "project" / "evals").mkdir(parents=True)
    (tmp_path / "project" / "evals" / "a.yaml").touch()
    reporter = GithubReporter()
    events = ScriptedRun(tmp_path / "project", [result], environ=environ)
    finding = Diagnostic(code="c", level="warning", message="m: 5%", file="evals/a.yaml", line=7, hint="do")
    import contextlib
    import io
    from dataclasses import replace

    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        for method, event in events.events():
            told = replace(event, diagnostics=(finding,)) if method == "on_diagnostics" else event
            getattr(reporter, method, lambda _: None)(told)
    assert err.getvalue().splitlines() == [
        "::warning file=project/evals/a.yaml,line=3,title=scripted / s::0 of 1 trial passed, score 0.00%0Ag: as wanted",
        "::warning file=project/evals/a.yaml,line=7,title=c::m: 5%25 [c]%0Ado",
    ]


@pytest.mark.parametrize("value", ["", "false", "1", "TRUE"])
def test_outside_a_workflow_it_is_silent(tell: Tell, tmp_path: Path, grader: Grader, value: str) -> None:
    environ = {"GITHUB_ACTIONS": value, "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    told = tell(trial_result("s", grader("g", False)), environ=environ)
    assert (told.lines, told.summary) == ([], "")


def test_annotations_can_be_switched_off(tell: Tell, grader: Grader) -> None:
    told = tell(trial_result("s", grader("g", False)), flags={"no-annotations": True})
    assert told.lines == []
    assert told.summary


def test_what_is_remembered_does_not_grow_with_trials(grader: Grader) -> None:
    from vally_reporter_github.findings import Findings

    findings = Findings()
    for index in range(300):
        result = trial_result("s", status="error", error="x" * 5_000, trial_index=index, total_trials=300)
        findings.add((0, "s"), result, None)
    assert [len(error.text) for error in findings.errors()] == [len("trial 1/300: ") + 2_000] * 9 + [
        len("trial 10/300: ") + 2_000
    ]
    assert len(findings.errors()) == 10
