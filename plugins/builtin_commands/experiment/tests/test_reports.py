"""The figures and reports of an experiment, from records of any kind."""

from __future__ import annotations

from typing import Any

import pytest

from vally import load_trial_result
from vally_command_experiment.documents import summary_document
from vally_command_experiment.figures import Figures
from vally_command_experiment.html import html_report
from vally_command_experiment.markdown import comparison_words, markdown_report
from vally_command_experiment.report_data import Report


def record(variant: str, stimulus: str, score: float | None, **fields: Any) -> Any:
    grade = (
        None if score is None else {"name": "a", "kind": "code", "passed": score >= 1, "score": score, "evidence": "e"}
    )
    usage = {
        "inputTokens": 10,
        "outputTokens": 0,
        "totalTokens": 10,
        "cost": {"provider": "p", "unit": "usd", "amount": 0.5},
    }
    document = {
        "type": "trial-result",
        "runId": "r",
        "itemId": "i",
        "evalName": "e",
        "evalFilePath": "e.yaml",
        "variant": variant,
        "model": "m",
        "stimulus": stimulus,
        "trialIndex": 0,
        "totalTrials": 1,
        "status": "success",
        "gradeResult": grade,
        "trajectory": {
            "events": [],
            "output": "",
            "metrics": {"tokenUsage": usage, "turnCount": 2, "wallTimeMs": 1000},
        },
    }
    return load_trial_result({**document, **fields})


def report(*records: Any, contaminated: tuple[dict[str, Any], ...] = (), partial: bool = False) -> Report:
    figures = Figures()
    for item in records:
        grade = item.grade_result
        figures.add(item, None if grade is None or grade.status == "error" else grade.passed)
    evals = [_eval(name, partial) for name in dict.fromkeys(item.variant for item in records)]
    head = {"runId": "r", "name": "x", "baseline": "plain", "variantNames": ["plain", "skilled"]}
    document = summary_document(head, _summary(evals, partial), [], contaminated)
    return Report(document, figures, [], [])


def _eval(variant: str, partial: bool) -> dict[str, Any]:
    return {"name": "e", "evalFilePath": "e.yaml", "variant": variant, "model": "m", "passed": not partial}


def _summary(evals: list[dict[str, Any]], partial: bool) -> Any:
    from vally import load_run_summary

    return load_run_summary(
        {
            "type": "run-summary",
            "runId": "r",
            "passed": not partial,
            "partial": partial,
            "stopReason": "interrupted" if partial else None,
            "startedAt": "",
            "completedAt": "",
            "evals": evals,
        }
    )


def test_errors_are_in_no_mean() -> None:
    made = report(record("plain", "s", 1.0), record("plain", "s", None, status="error", error="away"))
    (row,) = made.score_rows()
    assert row.cells[0] is not None
    assert (row.cells[0].mean_score, row.cells[0].verdicts, row.cells[0].errors) == (1.0, 1, 1)
    assert list(made.problems()) == [("e / s", "plain (baseline)", "error: away")]


def test_the_deltas_are_to_the_baseline() -> None:
    made = report(record("plain", "s", 0.25), record("skilled", "s", 1.0), record("skilled", "only here", 1.0))
    text = markdown_report(made)
    assert "| Eval / stimulus | plain | skilled | Δ skilled |" in text
    assert "| e / s | 0.25 (0/1) | 1.00 (1/1) | +0.75 |" in text
    assert "| e / only here | – | 1.00 (1/1) | – |" in text


def test_exact_ties_are_rounded_upward_as_everywhere() -> None:
    passed = [record("skilled", str(number), 1.0) for number in range(3)]
    made = report(record("plain", "0", 0.125), *passed, *(record("skilled", str(number), 0.0) for number in range(45)))
    assert "| e / 0 | 0.13 (0/1) |" in markdown_report(made)
    assert "| 6.3% |" in markdown_report(made)
    page = html_report(made)
    assert ">0.13<" in page
    assert "6.3%" in page


def test_the_comparison_names_the_judges_of_the_baseline() -> None:
    made = report(record("plain", "s", 1.0), record("skilled", "s", 1.0))
    summary = {"ciLow": None, "ciHigh": None, "meanScore": -0.125, "wins": 0, "ties": 0, "losses": 1, "erroredCount": 0}
    compared = {"treatment": "skilled", "evalFile": "e.yaml", "model": "m", "summary": summary}
    plan = {
        "variant": "plain", "evalFile": "e.yaml", "model": "m", "judgeModel": "gpt-j",
        "runs": 1, "stimuli": ["s"], "evalHash": "", "configHash": "",
    }  # fmt: skip
    other = {**plan, "evalFile": "f.yaml", "judgeModel": "unused"}
    made.comparisons = [{**compared, "unmatchedBaseline": [], "unmatchedTreatment": []}]
    made.plan = [plan, {**plan, "variant": "skilled", "judgeModel": "other"}, other]
    assert "## Comparison (judge gpt-j)\n" in markdown_report(made)
    assert "| skilled | e.yaml | -0.12 | – | 0/0/1 | 0 | 0 | Inconclusive |" in markdown_report(made)
    assert "Judge: gpt-j" in html_report(made)


def test_a_partial_run_says_so_first() -> None:
    made = report(record("plain", "s", 1.0), partial=True)
    assert markdown_report(made).splitlines()[2].startswith("**⚠️ PARTIAL (interrupted)** · ")
    assert "Partial (interrupted)" in html_report(made)


def test_costs_make_a_chart_with_a_unit() -> None:
    page = html_report(report(record("plain", "s", 0.5), record("skilled", "s", 1.0)))
    assert "Mean score against cost per trial" in page
    assert "usd" in page
    assert page.count("<svg") == 3


def test_a_contaminated_arm_is_named_with_its_reasons() -> None:
    spoiled = {
        "variant": "plain",
        "evalFile": "e.yaml",
        "model": "m",
        "reasons": ["skill 'x', which it should not have"],
    }
    made = report(record("plain", "s", 1.0), contaminated=(spoiled,))
    assert "## Contaminated arms" in markdown_report(made)
    assert made.document["passed"] is False
    assert "arms were contaminated" in html_report(made)


@pytest.mark.parametrize(
    ("low", "high", "underpowered", "words"),
    [
        (None, None, True, "Inconclusive"),
        (0.1, 0.2, True, "Credibly better"),
        (-0.2, -0.1, False, "Credibly worse"),
        (-0.1, 0.1, False, "No credible difference"),
        (-0.1, 0.1, True, "No credible difference (underpowered)"),
        (0.0, 0.2, False, "No credible difference"),
    ],
)
def test_words_for_an_interval(low: float | None, high: float | None, underpowered: bool, words: str) -> None:
    stats = {"signTest": {"underpowered": underpowered}}
    assert comparison_words({"ciLow": low, "ciHigh": high, "stats": stats}) == words
