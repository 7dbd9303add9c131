"""The report: its text, its tables, and which trials have a section."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vally import GraderResult, TrialResult
from vally.testing import ScriptedRun, trial_result
from vally_reporter_markdown.reporter import MarkdownReporter

Report = Callable[..., str]
Grader = Callable[..., GraderResult]

GOLDEN = """\
# Vally eval results

**❌ FAILED**: 1 of 2 evals passed, 4 trials (2 pass, 2 fail, 0 errors, 0 skipped), 1 flaky

- Run: scripted · Started: 2026-01-02T03:04:05.678Z · Duration: 0m33s
- Executor: scripted
- Model: gpt-x · Judge model: scripted-model
- Vally: 1.2.3

| Eval | Model | Score | Threshold | Stimuli | Trials passed | Duration | Result |
|---|---|---:|---:|---:|---:|---:|---|
| config-eval | gpt-x | 0.67 | 0.90 | 0/1 | 1/3 | 8.3s | ❌ FAIL |
| hello-eval | gpt-x | 1.00 | 0.90 | 1/1 | 1/1 | 8.3s | ✅ PASS |

## config-eval (gpt-x)

score 0.67 &lt; 0.90

pass rate 33.3% (95% CI 6.1% to 79.2% over 3 trials)

| Stimulus | Trials | Score | pass@k | pass^k | Flaky | Turns | Tool Calls | Tokens | Duration | Result |
|---|---:|---:|---:|---:|---|---:|---:|---:|---:|---|
| writes-json | 1/3 | 0.67 | 1.00 | 0.04 | yes (67%) | 4.0 | 6.3 | 8,541 | 0m25s | ❌ FAIL |

### writes-json: trial 2/3

Score 0.50 · 4 turns · 6 tool calls · 2,847 tokens · 8.3s · end reason: completed

| Grader | Score | Evidence | Result |
|---|---:|---|---|
| file-exists app.json | 1.00 | Files matching 'app.json' found: app.json | ✅ |
| output-contains port | 0.00 | 'port' NOT found in output | ❌ |

<details><summary>Agent output</summary>

```text
Done.
```

</details>

### writes-json: trial 3/3

Score 0.50 · 4 turns · 7 tool calls · 2,847 tokens · 8.3s · end reason: completed

| Grader | Score | Evidence | Result |
|---|---:|---|---|
| file-exists app.json | 1.00 | Files matching 'app.json' found: app.json | ✅ |
| output-contains port | 0.00 | 'port' NOT found in output | ❌ |

<details><summary>Agent output</summary>

```text
Done.
```

</details>

## hello-eval (gpt-x)

score 1.00 &gt;= 0.90

| Stimulus | Trials | Score | pass@k | pass^k | Flaky | Turns | Tool Calls | Tokens | Duration | Result |
|---|---:|---:|---:|---:|---|---:|---:|---:|---:|---|
| writes-hello | 1/1 | 1.00 | 1.00 | 1.00 | no | 1.0 | 1.0 | 1 | 8.3s | ✅ PASS |

### writes-hello

Score 1.00 · 1 turn · 1 tool call · 1 token · 8.3s · end reason: completed

| Grader | Score | Evidence | Result |
|---|---:|---|---|
| file-exists app.json | 1.00 | Files matching 'app.json' found: app.json | ✅ |

<details><summary>Agent output</summary>

```text
Done.
```

</details>
"""


def test_a_whole_report(report: Report, grader: Grader, measured: Any) -> None:
    exists = grader("file-exists app.json", evidence="Files matching 'app.json' found: app.json")
    missing = grader("output-contains port", False, "'port' NOT found in output")
    config = {"eval_name": "config-eval", "eval_file_path": "evals/config/eval.yaml", "total_trials": 3}
    hello = {"eval_name": "hello-eval", "eval_file_path": "evals/hello/eval.yaml"}
    facts = {"model": "gpt-x", "duration_ms": 8349}
    results = [
        trial_result(
            "writes-json", exists, missing, trial_index=2, trajectory=measured(tool_calls=7), **config, **facts
        ),
        trial_result("writes-json", exists, missing, trial_index=1, trajectory=measured(), **config, **facts),
        trial_result(
            "writes-json",
            exists,
            grader("output-contains port"),
            trial_index=0,
            trajectory=measured(),
            **config,
            **facts,
        ),
        trial_result("writes-hello", exists, trajectory=measured(1, 1, 1), **hello, **facts),
    ]
    assert report(*results, threshold=0.9) == GOLDEN


def table(text: str, title: str) -> list[list[str]]:
    """The rows below the header of the table whose first column has that title."""
    lines = text[text.index(f"| {title} |") :].split("\n\n")[0].splitlines()[2:]
    return [re.split(r" \| ", line[2:-2]) for line in lines]


def sections(text: str) -> list[str]:
    return re.findall("^### (.*)$", text, re.MULTILINE)


def trials(name: str, *graders: list[GraderResult] | dict[str, Any]) -> list[TrialResult]:
    results = []
    for index, given in enumerate(graders):
        place = {"trial_index": index, "total_trials": len(graders)}
        fields = given if isinstance(given, dict) else {}
        results.append(trial_result(name, *(() if isinstance(given, dict) else given), **place, **fields))
    return results


ERRORED: dict[str, Any] = {"status": "error", "error": "the provider\nis | down"}
SKIPPED: dict[str, Any] = {"status": "skipped", "skip_reason": "no browser"}


def test_sections_of_several_trials(report: Report, grader: Grader) -> None:
    bad, good = [grader("g", False)], [grader("g")]
    made = trials("s", good, bad, ERRORED, SKIPPED, [grader("g", None)], bad)
    assert sections(report(*reversed(made))) == ["s: trial 2/6", "s: trial 3/6", "s: trial 5/6"]


def test_verbose_has_all_trials(report: Report, grader: Grader) -> None:
    assert sections(report(*trials("s", [grader("g")], SKIPPED), verbose=True)) == ["s: trial 1/2", "s: trial 2/2"]


def test_the_only_trial_has_a_section(report: Report, grader: Grader) -> None:
    assert sections(report(*trials("a", [grader("g")]), *trials("b", SKIPPED), *trials("c", []))) == ["a", "b", "c"]


def test_what_a_section_says_of_a_trial_without_a_verdict(report: Report, grader: Grader) -> None:
    text = report(*trials("e", ERRORED), *trials("s", SKIPPED), *trials("g", [grader("a", None, "no judge")]))
    assert "### e\n\n❌ ERROR: the provider is \\| down\n" in text
    assert "### s\n\n⏭️ SKIPPED: no browser\n" in text
    assert "### g\n\n❌ ERROR: a grader reached no verdict · Score 0.00 · 1 turn · " in text
    assert table(text, "Grader") == [["a", "0.00", "no judge", "❌ ERROR"]]


def test_results_of_stimuli(report: Report, grader: Grader) -> None:
    text = report(
        *trials("passes", [grader("g")]),
        *trials("fails", [grader("g", False)]),
        *trials("breaks", ERRORED),
        *trials("cannot be graded", [grader("g", None)]),
        *trials("is skipped", SKIPPED),
        *trials("has no graders", []),
    )
    rows = {row[0]: row for row in table(text, "Stimulus")}
    assert {name: row[-1] for name, row in rows.items()} == {
        "passes": "✅ PASS",
        "fails": "❌ FAIL",
        "breaks": "❌ ERROR",
        "cannot be graded": "❌ ERROR",
        "is skipped": "⏭️ SKIPPED",
        "has no graders": "⏭️ not graded",
    }
    assert rows["breaks"][1:] == ["0/1", "–", "–", "–", "–", "–", "–", "–", "1.2s", "❌ ERROR"]
    assert rows["has no graders"][1:] == ["0/1", "–", "–", "–", "–", "1.0", "0.0", "0", "1.2s", "⏭️ not graded"]
    assert table(text, "Eval")[0][-1] == "❌ FAIL"


def test_an_eval_of_which_nothing_could_be_graded(report: Report) -> None:
    assert table(report(*trials("s", ERRORED)), "Eval")[0][-1] == "❌ ERROR"


@pytest.mark.parametrize(
    ("passed", "at_k", "to_the_k", "flaky"),
    [
        ([True, True, False, True, True], "1.00", "0.33", "yes (20%)"),
        ([False, False], "0.00", "0.00", "no"),
        ([True, True], "1.00", "1.00", "no"),
        ([True] * 7 + [False], "1.00", "0.34", "yes (13%)"),
    ],
)
def test_several_trials(
    report: Report, grader: Grader, passed: list[bool], at_k: str, to_the_k: str, flaky: str
) -> None:
    (row,) = table(report(*trials("s", *([grader("g", item)] for item in passed))), "Stimulus")
    assert row[1] == f"{sum(passed)}/{len(passed)}"
    assert row[3:6] == [at_k, to_the_k, flaky]


def test_figures_are_over_the_trials_that_have_them(report: Report, grader: Grader, measured: Any) -> None:
    results = trials("s", [grader("g")], [grader("g")], ERRORED)
    results[0] = results[0].model_copy(update={"trajectory": measured(1, 2, 1000)})
    results[1] = results[1].model_copy(update={"trajectory": measured(2, 3, 500)})
    (row,) = table(report(*results), "Stimulus")
    assert row[6:10] == ["1.5", "2.5", "1,500", "3.7s"]


def test_nested_graders(report: Report, grader: Grader) -> None:
    outer = grader("outer", False, details=[grader("inner", details=[grader("innermost", None)]), grader("other")])
    assert [[row[0], row[-1]] for row in table(report(*trials("s", [outer])), "Grader")] == [
        ["outer", "❌"],
        ["↳ inner", "✅"],
        ["↳ ↳ innermost", "❌ ERROR"],
        ["↳ other", "✅"],
    ]


def test_without_grading(report: Report) -> None:
    text = report(*trials("s", []), *trials("e", [], ERRORED), skip_grade=True, threshold=0.5)
    assert [row[2] for row in table(text, "Eval")] == ["–"]
    assert table(text, "Eval")[0][-1] == "❌ ERROR"
    rows = table(text, "Stimulus")
    assert [[*row[2:6], row[-1]] for row in rows] == [
        ["–", "–", "–", "–", "⏭️ not graded"],
        ["–", "–", "–", "–", "❌ ERROR"],
    ]


def test_an_eval_without_graders(report: Report) -> None:
    text = report(*trials("s", []))
    assert "**⏭️ SKIPPED**: nothing was graded, 1 trial" in text
    assert table(text, "Eval")[0][-1] == "⏭️ not graded"


def test_without_grading_and_errors(report: Report) -> None:
    text = report(*trials("s", []), skip_grade=True)
    assert table(text, "Eval")[0][-1] == "⏭️ not graded"
    assert "Score " not in text[text.index("### s") :]


@pytest.mark.parametrize(
    ("stop_reason", "verdict"),
    [
        (None, "**✅ PASSED**: 1 of 1 evals passed, 1 trial (1 pass, 0 fail, 0 errors, 0 skipped), 0 flaky\n"),
        ("interrupted", "**⚠️ PARTIAL (interrupted)** **❌ FAILED**: 1 of 1 evals passed, 1 trial (1 pass, "),
        ("budget-cost", "**⚠️ PARTIAL (budget-cost)** **❌ FAILED**: 1 of 1 evals passed, 1 trial (1 pass, "),
    ],
)
def test_the_verdict(report: Report, grader: Grader, stop_reason: str | None, verdict: str) -> None:
    text = report(*trials("s", [grader("g")]), stop_reason=stop_reason)
    assert text.startswith(f"# Vally eval results\n\n{verdict}")


def test_several_models_and_no_threshold(report: Report, grader: Grader) -> None:
    text = report(*(trial_result("s", grader("g"), model=model) for model in ("gpt-x", "gpt_y")))
    assert "- Model: gpt-x, gpt\\_y · Judge model: scripted-model\n" in text
    assert [row[1:4] for row in table(text, "Eval")] == [["gpt-x", "1.00", "–"], ["gpt\\_y", "1.00", "–"]]
    assert re.findall("^## (.*)$", text, re.MULTILINE) == ["scripted (gpt-x)", "scripted (gpt\\_y)"]


def test_a_run_of_nothing(report: Report) -> None:
    text = report()
    assert "- Executor: –\n- Model: – · Judge model: –\n" in text
    assert table(text, "Eval") == []


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [(0, "0.0s"), (9_949, "9.9s"), (9_950, "0m10s"), (70_000, "1m10s"), (161_400, "2m41s"), (3_725_000, "1h02m")],
)
def test_durations(report: Report, grader: Grader, milliseconds: int, shown: str) -> None:
    text = report(trial_result("s", grader("g"), duration_ms=milliseconds))
    assert f" · Duration: {shown}\n" in text
    assert table(text, "Stimulus")[0][9] == shown
    assert f" tokens · {shown} · end reason" in text


def test_a_run_with_directories_of_variants_has_another_report(tmp_path: Path, grader: Grader) -> None:
    events = list(ScriptedRun(tmp_path, [trial_result("s", grader("g"))]).events())
    reporter = MarkdownReporter()
    reporter.on_run_start(replace(events[0][1], variant_dirs={"main": tmp_path / "run" / "main"}))
    assert reporter.on_run_complete(events[-1][1]) == {}
    assert not (tmp_path / "run" / "eval-results.md").exists()


@pytest.mark.parametrize(("backend", "end"), [(None, ""), ("local", ""), ("ray/sandbox", " · Backend: ray/sandbox")])
def test_where_it_ran_is_told_unless_it_was_as_always(
    report: Report, grader: Grader, backend: str | None, end: str
) -> None:
    assert f"- Executor: scripted{end}\n" in report(trial_result("s", grader("g")), backend=backend)
