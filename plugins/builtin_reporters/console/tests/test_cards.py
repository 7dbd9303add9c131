"""Cards: which blocks they have, and every line of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from vally import GraderResult, TrialResult
from vally.testing import PlayedRun, trial_result

Play = Callable[..., PlayedRun]
Grader = Callable[..., GraderResult]
Trials = Callable[..., list[TrialResult]]

GOLDEN = """\
Found 1 skill(s): config-writer

━━━ writes-json ━━━
✘ FAIL  1/3 trials passed · score 0.67 · flaky 67% · config-eval · gpt-x

Trial 2/3  ✘ fail  score 0.50
Metrics
─────────────
  Tokens      2,847
  Turns       4
  Tool calls  6
  Wall time   8.3s
  Errors      0
  Skills used config-writer
  Model       gpt-x
Graders (1/2)
─────────────────────────────────────────
  ✔ file-exists app.json  Files matching 'app.json' found: app.json
  ✘ output-contains port  'port' NOT found in output

1 grader(s) failed.

Trial 3/3  ✘ fail  score 0.50
Metrics
─────────────
  Tokens      2,847
  Turns       4
  Tool calls  6
  Wall time   8.3s
  Errors      0
  Skills used config-writer
  Model       gpt-x
Graders (1/2)
─────────────────────────────────────────
  ✔ file-exists app.json  Files matching 'app.json' found: app.json
  ✘ output-contains port  'port' NOT found in output

1 grader(s) failed.

━━━ writes-hello ━━━
✔ PASS  1/1 trials passed · score 1.00 · hello-eval · gpt-x

Metrics
─────────────
  Tokens      2,847
  Turns       4
  Tool calls  6
  Wall time   8.3s
  Errors      0
  Skills used config-writer
  Model       gpt-x
Graders (1/1)
─────────────────────────────────────────
  ✔ file-exists app.json  Files matching 'app.json' found: app.json

All graders passed.

Summary
─────────────
  ✘ config-eval (gpt-x)  2 of 3 trials failed   0/1 stimuli passed   3 trials: 1 pass, 2 fail
      pass rate 33.3% (95% CI 6.1% to 79.2% over 3 trials)
  ✔ hello-eval (gpt-x)   all graders passed     1/1 stimuli passed   1 trial: 1 pass

FAILED  1 of 2 evals passed · 4 trials · 1 flaky · 0 errors · 33.4s · 11,388 tokens
"""


def test_a_whole_report(play: Play, grader: Grader, trials: Trials, measured: Any) -> None:
    exists = grader("file-exists app.json", evidence="Files matching 'app.json' found: app.json")
    missing = grader("output-contains port", False, "'port' NOT found in output")
    found = grader("output-contains port", evidence="'port' found in output")
    facts = {"model": "gpt-x", "duration_ms": 8349, "trajectory": measured}
    first = trials(
        "writes-json",
        [exists, found],
        [exists, missing],
        [exists, missing],
        eval_name="config-eval",
        eval_file_path="evals/config/eval.yaml",
        **facts,
    )
    second = trials("writes-hello", [exists], eval_name="hello-eval", eval_file_path="evals/hello/eval.yaml", **facts)
    played = play(*first, *second, skills=["config-writer"])
    assert played.stdout == GOLDEN
    assert played.stderr == ""


def card(played: PlayedRun) -> str:
    return played.stdout.split("Summary\n")[0]


def headings(played: PlayedRun) -> list[str]:
    return re.findall(r"^(?:━━━ .* ━━━|Trial .*|Graders .*|⚠ ERROR .*|○ SKIPPED .*)$", card(played), re.MULTILINE)


def test_the_header_line_stands_alone(play: Play, grader: Grader) -> None:
    lines = play(trial_result("a name", grader("g"))).stdout.splitlines()
    assert lines[0] == "━━━ a name ━━━"
    assert lines[1] == "✔ PASS  1/1 trials passed · score 1.00 · scripted · default-model"


def test_passing_trials_of_several_have_no_block(play: Play, grader: Grader, trials: Trials) -> None:
    played = play(*trials("s", [grader("g")], [grader("g")]))
    assert card(played) == "━━━ s ━━━\n✔ PASS  2/2 trials passed · score 1.00 · scripted · default-model\n\n"


def test_at_most_three_bad_trials_are_shown_the_first_of_the_plan(play: Play, grader: Grader, trials: Trials) -> None:
    bad = [grader("g", False)]
    results = trials("s", bad, [grader("g")], bad, {"status": "error", "error": "down"}, bad, bad)
    shown = ["━━━ s ━━━", "Trial 1/6  ✘ fail  score 0.00", "Graders (0/1)", "Trial 3/6  ✘ fail  score 0.00"]
    shown += ["Graders (0/1)", "Trial 4/6  ⚠ error", "⚠ ERROR  down"]
    assert headings(play(*reversed(results))) == shown


def test_verbose_shows_statistics_of_several_trials(play: Play, grader: Grader, trials: Trials) -> None:
    results = trials("a", [grader("g")], [grader("g", False)], [grader("g", False)])
    lines = play(*results, verbose=True).stdout.splitlines()
    assert lines[3] == "pass@3 1.00 · pass^3 0.04 · pass rate 33.3% (95% CI 6.1% to 79.2%)"


def test_statistics_need_several_trials(play: Play, grader: Grader) -> None:
    assert "pass@" not in play(trial_result("a", grader("g")), verbose=True).stdout


def test_verbose_shows_all_trials(play: Play, grader: Grader, trials: Trials) -> None:
    results = trials("s", [grader("g")], [grader("g", False)], {"status": "skipped", "skip_reason": "budget"})
    assert headings(play(*results, verbose=True)) == [
        "━━━ s ━━━",
        "Trial 1/3  ✔ pass  score 1.00",
        "Graders (1/1)",
        "Trial 2/3  ✘ fail  score 0.00",
        "Graders (0/1)",
        "Trial 3/3  ○ skipped",
        "○ SKIPPED  budget",
    ]


def test_an_errored_trial(play: Play) -> None:
    played = play(trial_result("s", status="error", error="the provider\nis down"))
    assert card(played) == (
        "━━━ s ━━━\n⚠ ERROR  0/1 trials passed · 1 execution error · scripted · default-model\n\n"
        "⚠ ERROR  the provider is down\n\n"
    )


def test_a_skipped_trial(play: Play) -> None:
    played = play(trial_result("s", status="skipped", skip_reason="no browser"))
    assert card(played) == (
        "━━━ s ━━━\n○ SKIPPED  0/1 trials passed · 1 skipped · scripted · default-model\n\n○ SKIPPED  no browser\n\n"
    )


def test_reasons_of_skipped_trials_without_a_block(play: Play, grader: Grader, trials: Trials) -> None:
    reasons = [{"status": "skipped", "skip_reason": reason} for reason in ("fail-fast", "fail-fast", "no browser")]
    played = play(*trials("s", [grader("g")], *reasons))
    assert "1/4 trials passed · score 1.00 · 3 skipped (fail-fast, no browser) · scripted" in played.stdout


def test_grader_errors(play: Play, grader: Grader, trials: Trials) -> None:
    played = play(*trials("s", [grader("a", None, "no judge"), grader("b", False)], [grader("a"), grader("b")]))
    assert card(played) == (
        "━━━ s ━━━\n"
        "✔ PASS  1/2 trials passed · score 1.00 · 1 grader error · scripted · default-model\n\n"
        "Trial 1/2  ⚠ error  score 0.00\n"
        "Metrics\n─────────────\n"
        "  Tokens      0\n  Turns       1\n  Tool calls  0\n  Errors      0\n  Model       default-model\n"
        "Graders (0/2)\n─────────────────────────────────────────\n"
        "  ⚠ a  no judge\n  ✘ b  as wanted\n\n"
        "1 grader(s) failed, 1 grader error(s).\n\n"
    )


def test_nested_results_are_indented_by_two_more(play: Play, grader: Grader) -> None:
    inner = grader("inner", False, "not so", details=[grader("innermost", None, "no reply")])
    outer = grader("outer", False, "1 of 2", details=[grader("fine"), inner])
    assert (
        "  ✘ outer  1 of 2\n    ✔ fine  as wanted\n    ✘ inner  not so\n      ⚠ innermost  no reply\n\n"
        "1 grader(s) failed.\n"
    ) in play(trial_result("s", outer)).stdout


@pytest.mark.parametrize(
    ("passed", "closing"),
    [
        ([True, True], "All graders passed."),
        ([True, False], "1 grader(s) failed."),
        ([False, None], "1 grader(s) failed, 1 grader error(s)."),
        ([True, None], "0 grader(s) failed, 1 grader error(s)."),
    ],
)
def test_the_graders_block(play: Play, grader: Grader, passed: list[bool | None], closing: str) -> None:
    played = play(trial_result("s", *(grader(f"g{index}", item) for index, item in enumerate(passed))))
    block = card(played)[card(played).index("Graders") :]
    glyphs = {True: "✔", False: "✘", None: "⚠"}
    lines = [f"  {glyphs[item]} g{index}  as wanted" for index, item in enumerate(passed)]
    head = f"Graders ({passed.count(True)}/{len(passed)})"
    assert block.split("\n") == [head, "─" * 41, *lines, "", closing, "", ""]


def test_a_grader_without_evidence_or_name(play: Play, grader: Grader) -> None:
    graders = [grader("g", evidence=""), grader("", grader_type="file-exists"), grader(" \x07 ")]
    lines = play(trial_result("s", *graders)).stdout.splitlines()
    assert [line for line in lines if line.startswith("  ✔")][:3] == [
        "  ✔ g  ",
        "  ✔ file-exists  as wanted",
        "  ✔ (unnamed)  as wanted",
    ]


def test_a_threshold_decides_instead_of_the_graders(play: Play, grader: Grader) -> None:
    result = trial_result("s", grader("a"), grader("b", False))
    assert "✔ PASS  1/1 trials passed · score 0.50 ·" in play(result, threshold=0.5).stdout


def test_a_pass_rate_decides_for_the_stimulus(play: Play, grader: Grader, trials: Trials) -> None:
    played = play(*trials("s", [grader("g")], [grader("g")], [grader("g", False)]), pass_rate=0.6)
    assert "✔ PASS  2/3 trials passed · score 0.67 · flaky 33% ·" in played.stdout


def test_percentages_round_ties_upward(play: Play, grader: Grader, trials: Trials) -> None:
    played = play(*trials("s", *([[grader("g")]] * 7), [grader("g", False)]))
    assert "flaky 13%" in played.stdout


def test_a_trial_that_is_not_graded(play: Play, trials: Trials) -> None:
    played = play(*trials("one", []), *trials("two", [], {"status": "error", "error": "down"}), skip_grade=True)
    assert "━━━ one ━━━\n○ SKIPPED  not graded · scripted · default-model\n\nMetrics\n" in played.stdout
    assert "Graders" not in played.stdout
    assert headings(played)[-2:] == ["Trial 2/2  ⚠ error", "⚠ ERROR  down"]


def test_an_unusual_end_and_the_model_that_was_used(play: Play, grader: Grader, measured: Any) -> None:
    changed = measured.model_copy(update={"end_reason": "agent_timeout", "metadata": {"model": "gpt-y"}})
    played = play(trial_result("s", grader("g"), trajectory=changed, model="gpt-x"))
    assert "  Model       gpt-y\n  Ended       agent_timeout\n" in played.stdout
    assert "· scripted · gpt-x\n" in played.stdout


def test_skills_that_were_not_used_are_not_listed(play: Play, grader: Grader) -> None:
    played = play(trial_result("s", grader("g")), skills=["b", "a"])
    assert played.stdout.startswith("Found 2 skill(s): a, b\n\n━━━")
    assert "Skills used" not in played.stdout


@pytest.mark.parametrize(("length", "shown"), [(200, "p" * 200), (201, "p" * 200 + "…")])
def test_verbose_shows_the_first_characters_of_the_prompt(play: Play, grader: Grader, length: int, shown: str) -> None:
    lines = play(trial_result("s", grader("g")), verbose=True, prompt="p" * length).stdout.splitlines()
    assert lines[:2] == ["━━━ s ━━━", shown]
    assert lines[2].startswith("✔ PASS")


def test_quiet_prints_no_cards(play: Play, grader: Grader) -> None:
    played = play(trial_result("s", grader("g", False)), quiet=True, skills=["a"])
    assert played.stdout.splitlines() == [
        "  ✘ scripted (default-model)  1 of 1 trial failed   0/1 stimuli passed   1 trial: 1 fail",
        "FAILED  0 of 1 evals passed · 1 trial · 0 flaky · 0 errors · 1.2s · 0 tokens",
    ]


def test_a_card_is_one_write_and_one_flush(play: Play, grader: Grader) -> None:
    class Recording:
        encoding = "utf-8"

        def __init__(self) -> None:
            self.calls: list[str] = []

        def write(self, text: str) -> None:
            self.calls.append(text)

        def flush(self) -> None:
            self.calls.append("flush")

    stream = Recording()
    play(trial_result("a", grader("g")), trial_result("b", grader("g")), stdout=stream)
    assert stream.calls[1:6:2] == ["flush"] * 3
    first, second, summary = stream.calls[0:6:2]
    assert (first[:8], second[:8], summary[:8]) == ("━━━ a ━━", "━━━ b ━━", "Summary\n")
    assert first.endswith("All graders passed.\n\n")


def test_a_stimulus_of_which_not_all_trials_are_told_has_a_card(play: Play, grader: Grader, trials: Trials) -> None:
    results = trials("s", [grader("g")], [grader("g")])
    assert headings(play(results[0])) == ["━━━ s ━━━"]


def test_stimuli_of_one_name_in_two_evals_have_a_card_each(play: Play, grader: Grader) -> None:
    results = [trial_result("s", grader("g"), model=model) for model in ("gpt-x", "gpt-y")]
    lines = play(*results).stdout.splitlines()
    assert [line for line in lines if line.startswith("✔ PASS")] == [
        f"✔ PASS  1/1 trials passed · score 1.00 · scripted · {model}" for model in ("gpt-x", "gpt-y")
    ]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"backend": "sandbox"}, True),
        ({"backend": "sandbox", "quiet": True}, False),
        ({"backend": "local"}, False),
        ({}, False),
    ],
)
def test_where_it_runs_is_told_unless_it_is_as_always(
    play: Play, grader: Grader, options: dict[str, Any], told: bool
) -> None:
    assert play(trial_result("s", grader("g")), **options).stdout.startswith("Backend: sandbox\n\n━━━") is told
