"""The summary of the step."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vally import GraderResult
from vally.testing import trial_result

Tell = Callable[..., Any]
Grader = Callable[..., GraderResult]
HOSTILE = "a|b `c` <script>x</script>\n| y | [l](u) \x1b[31m"

GOLDEN = """\
## Vally eval results

**❌ FAILED**: 1 of 2 evals passed, 5 trials (3 pass, 1 fail, 1 errors, 0 skipped), 1 flaky

| Eval | Model | Score | Threshold | Stimuli | Trials passed | Duration | Result |
|---|---|---:|---:|---:|---:|---:|---|
| scripted | default-model | 0.75 | – | 1/3 | 2/4 | 1.2s | ❌ FAIL |
| other | default-model | 1.00 | – | 1/1 | 1/1 | 1.2s | ✅ PASS |

- scripted (default-model): 1 of 4 trials failed, and 1 trial had an execution error · pass rate 66.7% (95% CI 20.8% to 93.9% over 3 trials) · score 0.75 (95% CI 0.00 to 1.00 over 2 stimuli)

### Failing stimuli

| Eval | Stimulus | Trials passed | First failing grader | Result |
|---|---|---:|---|---|
| scripted (default-model) | a | 1/2 | g: not seen | ❌ FAIL |
| scripted (default-model) | b | 0/1 | down | ❌ ERROR |

"""  # noqa: E501  # lines of the file


def test_a_whole_summary(tell: Tell, grader: Grader) -> None:
    told = tell(
        trial_result("a", grader("g"), trial_index=0, total_trials=2),
        trial_result("a", grader("g", False, "not seen"), trial_index=1, total_trials=2),
        trial_result("b", status="error", error="down"),
        trial_result("c", grader("g")),
        trial_result("d", grader("g"), eval_name="other", eval_file_path="other.yaml"),
    )
    assert told.summary == GOLDEN


def test_a_run_that_passes_lists_no_stimuli(tell: Tell, grader: Grader) -> None:
    summary = tell(trial_result("a", grader("g"))).summary
    assert summary.startswith("## Vally eval results\n\n**✅ PASSED**: 1 of 1 evals passed")
    assert "Failing stimuli" not in summary


def test_a_run_of_nothing_did_not_pass(tell: Tell) -> None:
    assert "**⏭️ SKIPPED**: nothing was run, 0 trials" in tell().summary


def test_an_eval_without_graders_did_not_pass(tell: Tell) -> None:
    assert "**⏭️ SKIPPED**: nothing was graded, 1 trial" in tell(trial_result("a")).summary


def test_a_partial_run_and_one_of_nothing(tell: Tell) -> None:
    summary = tell(stop_reason="interrupted").summary
    assert "**⚠️ PARTIAL (interrupted)** **❌ FAILED**: 0 of 0 evals passed, 0 trials" in summary


def test_hostile_text_is_no_markup(tell: Tell, grader: Grader) -> None:
    markdown = pytest.importorskip("markdown_it")
    names = {"eval_name": HOSTILE, "model": HOSTILE}
    summary = tell(
        trial_result(HOSTILE, grader(HOSTILE, False, HOSTILE), **names),
        trial_result("e", status="error", error=HOSTILE, **names),
    ).summary
    html = markdown.MarkdownIt("gfm-like", {"linkify": False}).render(summary)
    assert html.count("<tr>") == 2 + 3
    assert not re.search("<script|<a |<code", html)
    assert not re.search("[\x00-\x09\x0b-\x1f]", summary)


def test_the_summary_is_appended(tell: Tell, tmp_path: Path, grader: Grader) -> None:
    (tmp_path / "summary.md").write_text("before\n")
    assert tell(trial_result("a", grader("g"))).summary.startswith("before\n## Vally eval results\n")


def test_it_has_a_limit(tell: Tell, grader: Grader) -> None:
    results = [trial_result(f"{index}" + "|" * 290, grader("g", False, "|" * 300)) for index in range(900)]
    summary = tell(*results).summary
    assert len(summary.encode()) <= 900 * 1024
    assert summary.endswith("\n\nThe rest does not fit here.\n")
    assert summary.splitlines()[-3].endswith("| ❌ FAIL |")


def test_it_can_be_switched_off(tell: Tell, grader: Grader) -> None:
    told = tell(trial_result("s", grader("g", False)), flags={"no-step-summary": True})
    assert told.summary == ""
    assert told.lines


def test_a_summary_that_cannot_be_written_is_a_warning(tell: Tell, tmp_path: Path, grader: Grader) -> None:
    environ = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "missing" / "summary.md")}
    told = tell(trial_result("s", grader("g")), environ=environ)
    assert told.lines[-1] == "warning: the step summary was not written: No such file or directory"
