"""What the page says of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vally import ErrorInfo, JudgeUsage, Phases
from vally.testing import ScriptedRun, event, trajectory, trial_result
from vally_reporter_html.reporter import HtmlReporter

Make = Callable[..., Any]
DIFF = """\
diff --git a/app.json b/app.json
new file mode 100644
--- /dev/null
+++ b/app.json
@@ -0,0 +1,2 @@
+{"port": 8080}
+--- not a header
diff --git a/b c.py b/b c.py
--- a/b c.py
+++ b/b c.py
@@ -1,2 +1 @@
-old
 same
\\ No newline at end of file
"""


def mixed(grader: Make) -> list[Any]:
    info = ErrorInfo(message="down", code="provider-error")
    return [
        trial_result("a", grader("g"), grader("h", score=0.8), trial_index=0, total_trials=3),
        trial_result("a", grader("g", False, "not seen"), trial_index=1, total_trials=3),
        trial_result("a", grader("g", None, "no judge"), trial_index=2, total_trials=3),
        trial_result("b", status="error", error="the provider is down", error_info=info),
        trial_result("c", status="skipped", skip_reason="no browser"),
        trial_result("d"),
        trial_result("e", grader("g"), eval_name="other", eval_file_path="other.yaml"),
    ]


def test_the_verdict_and_what_it_rests_on(report: Make, grader: Make) -> None:
    page = report(*mixed(grader), threshold=0.5)
    assert page.words("h1") == [
        "FAILED 1 of 2 evals passed · 7 trials: 2 pass, 1 fail · 2 trials not measured because of errors · 1 skipped"
    ]
    assert page.all("title")[0].text == "FAILED – Vally eval results"
    tiles = dict(zip(page.words("dt")[:7], page.words("dd")[:7], strict=True))
    assert tiles == {
        "Passed": "2",
        "Failed": "1",
        "Errors": "2",
        "Skipped": "1",
        "Flaky stimuli": "1",
        "Duration": "8.6s",
        "Tokens": "0",
    }


def test_evals_and_their_reasons(report: Make, grader: Make) -> None:
    page = report(*mixed(grader), threshold=0.5)
    rows = [row for row in page.words("tr") if " default-model " in row and ("✘" in row or "✔" in row)]
    errors = "and 1 trial had an execution error and 1 trial had a grader error"
    assert rows == [
        f"scripted default-model 0.45 0.50 0/4 1/6 1.2s ✘ FAIL score 0.45 < 0.50, {errors}",
        "other default-model 1.00 0.50 1/1 1/1 1.2s ✔ PASS score 1.00 >= 0.50",
    ]
    assert page.words("p", "first-error") == ["First error: g: no judge"]


def test_the_matrix_links_to_the_trials(report: Make, grader: Make) -> None:
    page = report(*mixed(grader), threshold=0.5)
    cells = page.all("a", "cell")
    assert [cell.text for cell in cells] == ["✔", "✘", "⚠", "⚠", "○", "–", "✔"]
    trials = page.all("details", "trial")
    assert [cell.attributes["href"] for cell in cells] == [f"#{trial.attributes['id']}" for trial in trials]
    assert cells[1].attributes["title"] == "a, trial 2: fail, score 0.00, 1.2s"


def test_ids_are_unique(report: Make, grader: Make) -> None:
    page = report(*mixed(grader))
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    targets = {element.attributes["href"][1:] for element in page.all("a")}
    assert targets <= set(ids)


def test_statistics_of_a_stimulus(report: Make, grader: Make) -> None:
    page = report(*[trial_result("s", grader("g", index > 0), trial_index=index, total_trials=3) for index in range(3)])
    row = next(row for row in page.words("tr", "filterable") if "yes" in row)
    assert row == "s 2/3 0.67 1.00 0.30 yes (33%) 0.0 0.0 0 3.7s ✘ FAIL".replace("0.0 0.0", "1.0 0.0")
    (bar,) = page.all("svg", "rate")
    assert bar.attributes["aria-label"] == "pass rate 66.67%, 95% interval 20.77% to 93.85%"
    assert "pass rate 66.7% (95% CI 20.8% to 93.9% over 3 trials)" in page.text


def test_a_trial_in_detail(report: Make, grader: Make) -> None:
    def at(second: int, kind: str, **data: Any) -> Any:
        made = event(kind, **data)
        made.timestamp = f"2026-01-02T03:04:{second:02d}.000Z"
        return made

    sub = at(9, "assistant_message", content="from a sub-agent")
    sub.agent_id, sub.agent_name = "x1", "explorer"
    happened = trajectory(
        at(1, "user_message", content="write it"),
        at(2, "tool_call", toolName="write", toolCallId="c1", arguments={"path": "app.json"}, mcpServer="fs"),
        at(5, "tool_result", toolName="write", toolCallId="c1", success=False, result="disk full"),
        at(6, "tool_call", toolName="bash", toolCallId="c2", arguments="ls"),
        at(7, "tool_result", toolName="view", toolCallId="c9", success=True, result={"lines": 3}),
        at(8, "error", message="rate limited"),
        sub,
        at(10, "token_usage", inputTokens=1000, outputTokens=20, model="m", cacheReadTokens=250),
        at(11, "skill_activation", name="config-writer", path="p"),
        at(12, "custom", eventType="note", more=1),
        output="it is done",
        diff=DIFF,
    ).model_copy(
        update={"stimulus": {"prompt": "write it"}, "metadata": {"model": "gpt-x-1"}, "end_reason": "completed"}
    )
    judge = grader("judge a", None, "timed out")
    panel = grader("quality", True, "2 of 3", score=0.8, grader_type="panel", details=[judge], metadata={"model": "j"})
    needed = grader("needed", False, metadata={"required": True})
    page = report(
        trial_result(
            "s",
            panel,
            needed,
            trajectory=happened,
            phases=Phases(setup_ms=100, agent_ms=800, capture_ms=0, grade_ms=100),
            judge_usage=JudgeUsage(input_tokens=7, output_tokens=3, total_tokens=10, call_count=1),
            warnings=["repaired"],
            attempts=2,
        )
    )
    body = page.one("div", "trial-body")
    words = " ".join(body.text.split())
    assert page.words("p", "grader-line") == [
        "✔ quality panel 0.80",
        "⚠ judge a no verdict: exception –",
        "✘ needed required 0.00",
    ]
    steps = page.words("li", "step")
    assert steps[:3] == [
        "0.000s user write it",
        '1.000s fs / write ✘ failed 3.0s {"path":"app.json"} arguments {"path":"app.json"} result disk full',
        "5.000s bash interrupted ls arguments ls",
    ]
    assert steps[3] == '6.000s view result {"lines":3}'
    assert steps[5] == "8.000s assistant explorer from a sub-agent"
    assert steps[6:] == ["10.000s skill config-writer", '11.000s custom note {"more":1}']
    assert "Tokens in / out 1,000 / 20 Cached 25.0% Judge tokens 10" in words
    assert "Model used gpt-x-1 Ended completed Attempts 2" in words
    assert "set-up 100ms agent 800ms grade 100ms" in words
    assert page.words("details", "file")[0].startswith("app.json +2 −0")
    assert page.words("details", "file")[1].startswith("b c.py +0 −1")
    kinds = [e.attributes["class"] for e in page.elements if e.tag == "span" and e.path[-1:] == ("pre",)]
    assert kinds == ["meta", "meta", "meta", "hunk", "add", "add", "meta", "meta", "hunk", "del", "same", "meta"]
    assert page.words("ul", "warnings") == ["repaired"]


def test_what_is_wrong_with_a_trial_is_said(report: Make, grader: Make) -> None:
    page = report(*mixed(grader))
    problems = [" ".join(e.text.split()) for e in page.elements if "problem" in e.attributes.get("class", "")]
    assert problems == ["⚠ Not measured provider-error the provider is down", "○ Skipped: no browser"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"diff": ""}, "No file was changed."),
        ({"diff_error": "git not found"}, "No diff: Capturing it failed: git not found"),
        ({"diff_path": "../x"}, "No diff: The diff file '../x' cannot be read."),
    ],
)
def test_diffs_that_are_none(report: Make, grader: Make, fields: dict[str, str], said: str) -> None:
    page = report(trial_result("s", grader("g"), trajectory=trajectory().model_copy(update=fields)))
    assert said in page.words("div", "trial-body")[0]
    assert not page.all("pre", "diff")


def test_a_diff_in_a_side_file(tmp_path: Path, grader: Make) -> None:
    from vally_reporter_html.document import document

    stored = trajectory().model_copy(update={"diff_path": "e/s/m/0/workspace.diff"})
    run = ScriptedRun(tmp_path, [trial_result("s", grader("g"), trajectory=stored)])
    events = list(run.events())
    (run.run_dir / "e/s/m/0").mkdir(parents=True)
    (run.run_dir / "e/s/m/0/workspace.diff").write_text(DIFF)
    text = b"".join(document(events[0][1], events[-1][1].summary, run.run_dir)).decode()
    assert text.count('<details class="file"') == 2


def test_a_run_of_nothing(report: Make) -> None:
    page = report()
    assert page.words("p", "empty") == ["Nothing was run."]


def test_a_partial_run(report: Make, grader: Make) -> None:
    results = [trial_result("a", grader("g")), trial_result("b", status="skipped", skip_reason="cancelled")]
    page = report(*results, stop_reason="interrupted")
    assert page.words("span", "badge") == ["PARTIAL (interrupted)"]
    assert page.words("p", "reason") == ["all graders passed, but the eval is partial"]


def test_only_errors(report: Make) -> None:
    page = report(*[trial_result(name, status="error", error="down") for name in "ab"])
    assert page.words("section", "card")[0].startswith("⚠ ERROR scripted")
    assert "–" in page.words("tr")[1]


def test_without_grades(report: Make) -> None:
    page = report(trial_result("a"), trial_result("b"), skip_grade=True)
    assert page.words("p", "notice") == ["This run was not graded."]
    assert page.words("tr", "filterable")[-1] == "b 0/1 – – – – no 1.0 0.0 0 1.2s – not graded"
    assert page.words("section", "card")[0].startswith("– not graded scripted")
    assert "PASS" not in page.words("tr")[1]


def test_variants_have_records_of_their_own(tmp_path: Path, grader: Make) -> None:
    results = [trial_result("s", grader("g", variant == "x"), variant=variant) for variant in ("x", "y")]
    events = list(ScriptedRun(tmp_path, results).events())
    run_dir = tmp_path / "run"
    lines = (run_dir / "results.jsonl").read_bytes().splitlines(keepends=True)
    (run_dir / "results.jsonl").unlink()
    places = {}
    for variant, line in zip("xy", lines, strict=False):
        places[variant] = run_dir / variant
        places[variant].mkdir()
        (places[variant] / "results.jsonl").write_bytes(line)
    reporter = HtmlReporter()
    reporter.on_run_start(replace(events[0][1], variant_dirs=places, kind="experiment"))
    named = reporter.on_run_complete(events[-1][1])
    assert named == {"HTML": run_dir / "eval-results.html"}
    text = named["HTML"].read_text(encoding="utf-8")
    assert text.count('class="trial filterable pass"') == text.count('class="trial filterable fail"') == 1
    assert "<td>x</td>" in text
    assert "<td>y</td>" in text


def test_a_run_of_several_models(report: Make, grader: Make) -> None:
    page = report(*[trial_result("s", grader("g"), model=model) for model in ("m1", "m2")])
    assert page.words("section", "card")[0].startswith("✔ PASS scripted m1")
    assert page.words("section", "card")[1].startswith("✔ PASS scripted m2")


def test_where_it_ran_is_told(report: Any, grader: Any) -> None:
    assert "ray/sandbox" in report(trial_result("s", grader("g")), backend="ray/sandbox").text
