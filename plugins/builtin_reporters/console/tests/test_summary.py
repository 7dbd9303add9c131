"""The lines at the end of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vally import GraderResult, TrialResult
from vally.testing import PlayedRun, trial_result

Play = Callable[..., PlayedRun]
Grader = Callable[..., GraderResult]
Trials = Callable[..., list[TrialResult]]


def summary(played: PlayedRun) -> list[str]:
    return played.stdout[played.stdout.index("Summary\n") :].splitlines()


def test_columns(play: Play, grader: Grader, trials: Trials) -> None:
    results = [
        *trials("a", [grader("g")], [grader("g", False)], eval_name="one", eval_file_path="1.yaml", model="gpt-x"),
        *trials("b", [grader("g")], eval_name="名前", eval_file_path="2.yaml", model="gpt-x-mini"),
    ]
    assert summary(play(*results, threshold=0.9)) == [
        "Summary",
        "─" * 13,
        "  ✘ one (gpt-x)        score 0.50 < 0.90    0/1 stimuli passed   2 trials: 1 pass, 1 fail",
        "      pass rate 50.0% (95% CI 9.5% to 90.5% over 2 trials)",
        "  ✔ 名前 (gpt-x-mini)  score 1.00 >= 0.90   1/1 stimuli passed   1 trial: 1 pass",
        "",
        "FAILED  1 of 2 evals passed · 3 trials · 1 flaky · 0 errors · 3.7s · 0 tokens",
    ]


def test_what_trials_came_to(play: Play, grader: Grader, trials: Trials) -> None:
    errored, skipped = {"status": "error", "error": "down"}, {"status": "skipped", "skip_reason": "no browser"}
    results = [
        *trials("a", [grader("g")], [grader("g", False)], [grader("g", None)], errored, skipped),
        *trials("b", [], []),
    ]
    line = summary(play(*results))[2]
    assert line.endswith("   0/2 stimuli passed   7 trials: 1 pass, 1 fail, 2 errors, 1 skipped, 2 not graded")


def test_errors_are_explained(play: Play, grader: Grader, trials: Trials) -> None:
    errored = {"status": "error", "error": "the judge\ntimed out \x1b[31m" + "x" * 300 + ": the\ncause"}
    results = [*trials("a", [grader("g")], errored), *trials("b", [grader("g")])]
    lines = summary(play(*results, threshold=0.8))
    assert lines[2].split("   ")[0].endswith("score 1.00 >= 0.80, but 1 trial had an execution error")
    assert lines[3].startswith("      first error: the judge timed out xxx")
    assert lines[3].endswith("xxx: the cause")
    assert "xxx…xxx" in lines[3]
    assert len(lines[3]) <= 6 + len("first error: ") + 200
    assert lines[4] == (
        "      pass rate 100.0% (95% CI 34.2% to 100.0% over 2 trials) · "
        "score 1.00 (95% CI 1.00 to 1.00 over 2 stimuli)"
    )


def test_quiet_explains_nothing(play: Play, grader: Grader, trials: Trials) -> None:
    results = trials("a", [grader("g")], [grader("g")], {"status": "error", "error": "down"})
    said = play(*results, threshold=0.8, quiet=True).stdout
    assert "but 1 trial had an execution error" in said
    assert "first error" not in said
    assert "95% CI" not in said


def test_variants_are_told_apart(play: Play, grader: Grader) -> None:
    results = [trial_result("s", grader("g"), variant=variant) for variant in ("main", "skilled")]
    lines = summary(play(*results))
    assert [line.split("  ")[1].strip() for line in lines[2:4]] == [
        "✔ scripted / main (default-model)",
        "✔ scripted / skilled (default-model)",
    ]


def test_cards_and_progress_tell_variants_apart(play: Play, grader: Grader) -> None:
    """One stimulus of one eval runs in all variants, at the same time."""
    results = [trial_result("s", grader("g"), variant=variant) for variant in ("plain", "skilled")]
    played = play(*results, progress="plain")
    for variant in ("plain", "skilled"):
        assert f" · scripted / {variant} · default-model\n" in played.stdout
        assert f"✔ scripted / {variant} / s (default-model)  " in played.stderr


@pytest.mark.parametrize(
    ("result", "stop_reason", "words"),
    [
        ([True], None, "PASSED  1 of 1 evals passed · 1 trial"),
        ([False], None, "FAILED  0 of 1 evals passed · 1 trial"),
        ([True], "interrupted", "PARTIAL (interrupted)  1 of 1 evals passed · 1 trial"),
        ([False], "budget-tokens", "PARTIAL (budget-tokens)  0 of 1 evals passed · 1 trial"),
    ],
)
def test_the_last_line(play: Play, grader: Grader, result: list[bool], stop_reason: str | None, words: str) -> None:
    played = play(trial_result("s", *(grader("g", item) for item in result)), stop_reason=stop_reason)
    assert summary(played)[-1] == f"{words} · 0 flaky · 0 errors · 1.2s · 0 tokens"


def test_a_run_with_a_trial_that_was_not_run_is_partial(play: Play) -> None:
    played = play(trial_result("s", status="skipped", skip_reason="cancelled"))
    assert summary(played)[-1].startswith("PARTIAL (incomplete)  0 of 1 evals passed")


@pytest.mark.parametrize(("skip_grade", "reason"), [(True, "not graded"), (False, "no graders")])
def test_what_is_not_graded_does_not_read_as_passed(play: Play, skip_grade: bool, reason: str) -> None:
    lines = summary(play(trial_result("s"), skip_grade=skip_grade))
    assert lines[2] == f"  ○ scripted (default-model)  {reason}   0/1 stimuli passed   1 trial: 1 not graded"
    assert lines[-1].startswith("SKIPPED  nothing was graded · 1 trial · ")


def test_evals_that_are_not_graded_are_counted_apart(play: Play, grader: Grader) -> None:
    results = [trial_result("s", grader("g")), trial_result("s", eval_file_path="other.yaml")]
    lines = summary(play(*results))
    assert [line.strip()[0] for line in lines[2:4]] == ["✔", "○"]
    assert lines[-1].startswith("PASSED  1 of 2 evals passed, 1 not graded · 2 trials · ")


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [(0, "0.0s"), (8_349, "8.3s"), (59_949, "59.9s"), (59_950, "1m00s"), (161_400, "2m41s"), (3_725_000, "1h02m")],
)
def test_durations(play: Play, grader: Grader, milliseconds: int, shown: str) -> None:
    assert f" · {shown} · " in summary(play(trial_result("s", grader("g"), duration_ms=milliseconds)))[-1]


def test_a_run_of_nothing(play: Play) -> None:
    said = play().stdout
    assert said == "SKIPPED  nothing was run · 0 trials · 0 flaky · 0 errors · 0.0s · 0 tokens\n"


def test_tokens_are_summed(play: Play, grader: Grader, measured: Any) -> None:
    results = [trial_result(name, grader("g"), trajectory=measured) for name in "abc"]
    assert summary(play(*results))[-1].endswith(" · 8,541 tokens")
