"""Statistics in words, and the table of evals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from vally import EvalSummary, GraderResult, TrialResult, eval_figures, eval_table, stimulus_figures
from vally.testing import ScriptedRun, trial_result


def summaries(tmp_path: Path, results: Sequence[TrialResult], **options: Any) -> list[EvalSummary]:
    *_, (name, complete) = ScriptedRun(tmp_path, results, **options).events()
    assert name == "on_run_complete"
    evals: list[EvalSummary] = complete.summary.evals
    return evals


def trials(name: str, outcomes: str, **fields: Any) -> list[TrialResult]:
    """One trial per letter: P passes, F fails, G has a grader error, E an execution error, S is skipped."""
    made = []
    for index, letter in enumerate(outcomes):
        facts = {"trial_index": index, "total_trials": len(outcomes), **fields}
        if letter == "E":
            made.append(trial_result(name, status="error", error="down", **facts))
        elif letter == "S":
            made.append(trial_result(name, status="skipped", skip_reason="no browser", **facts))
        elif letter == "G":
            made.append(trial_result(name, GraderResult.error("no judge", name="g"), **facts))
        else:
            made.append(trial_result(name, GraderResult.verdict(letter == "P", "seen", name="g"), **facts))
    return made


def test_figures_of_an_eval(tmp_path: Path) -> None:
    (item,) = summaries(tmp_path, [*trials("a", "PPP"), *trials("b", "FFF"), *trials("c", "PFP")])
    assert eval_figures(item) == [
        "pass rate 55.6% (95% CI 26.7% to 81.1% over 9 trials)",
        "score 0.56 (95% CI 0.00 to 1.00 over 3 stimuli)",
    ]


def test_what_cannot_be_estimated_is_left_out(tmp_path: Path) -> None:
    (one,) = summaries(tmp_path / "one", trials("a", "P"))
    assert eval_figures(one) == []
    (single,) = summaries(tmp_path / "single", trials("a", "PFP"))
    assert eval_figures(single) == ["pass rate 66.7% (95% CI 20.8% to 93.9% over 3 trials)"]
    (broken,) = summaries(tmp_path / "broken", trials("a", "EES"))
    assert eval_figures(broken) == []


@pytest.mark.parametrize(
    ("outcomes", "shown"),
    [
        ("FPF", ["pass@3 1.00", "pass^3 0.04", "pass rate 33.3% (95% CI 6.1% to 79.2%)"]),
        ("FFEGS", ["pass@2 0.00", "pass^2 0.00", "pass rate 0.0% (95% CI 0.0% to 65.8%)"]),
        ("PE", []),
        ("EE", []),
    ],
)
def test_figures_of_a_stimulus(tmp_path: Path, outcomes: str, shown: list[str]) -> None:
    (item,) = summaries(tmp_path, trials("a", outcomes))
    assert item.stats is not None
    assert stimulus_figures(item.stats["stimuli"][0]) == shown


def test_the_table_of_evals(tmp_path: Path) -> None:
    results = [
        *trials("a", "PF", eval_name="one", eval_file_path="1.yaml", duration_ms=65_000),
        *trials("b", "E", eval_name="a|b", eval_file_path="2.yaml"),
        *trials("c", "P", eval_name="\x1b[1m", eval_file_path="3.yaml"),
    ]
    items = summaries(tmp_path, results, threshold=0.75)
    assert list(eval_table(items)) == [
        "| Eval | Model | Score | Threshold | Stimuli | Trials passed | Duration | Result |",
        "|---|---|---:|---:|---:|---:|---:|---|",
        "| one | default-model | 0.50 | 0.75 | 0/1 | 1/2 | 1m05s | ❌ FAIL |",
        "| a\\|b | default-model | – | 0.75 | 0/1 | 0/1 | 1.2s | ❌ ERROR |",
        "| – | default-model | 1.00 | 0.75 | 1/1 | 1/1 | 1.2s | ✅ PASS |",
    ]


def test_a_reader_of_markdown_sees_the_table(tmp_path: Path) -> None:
    markdown = pytest.importorskip("markdown_it")
    items = summaries(tmp_path, trials("a", "PF", eval_name="a|b `c` <i>"))
    html = markdown.MarkdownIt("commonmark").enable("table").render("\n".join(eval_table(items)))
    assert html.count("<tr>") == 2
    assert "<td>a|b `c` &lt;i&gt;</td>" in html


def test_variants_are_told_apart(tmp_path: Path) -> None:
    results = [*trials("a", "P", variant="main"), *trials("a", "F", variant="skilled")]
    rows = list(eval_table(summaries(tmp_path, results)))
    assert [row.split(" | ")[0] for row in rows[2:]] == ["| scripted / main", "| scripted / skilled"]
