"""`vally compare` over two runs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from comparisons import Comparisons

from vally import CompareInput, CompareResult, GraderSpec, JudgeError
from vally.testing import ScriptedJudge


@pytest.fixture
def kit(tmp_path: Path) -> Comparisons:
    return Comparisons(tmp_path)


def both(*words: str) -> tuple[str, ...]:
    return ("--baseline", "a.jsonl", "--treatment", "b.jsonl", *words)


def test_the_report_names_stimuli_counts_and_what_they_allow_to_say(kit: Comparisons) -> None:
    kit.side("a.jsonl", {"writes-json": [1, 1, 1], "keeps": [2, 2, 2]}, passed=False)
    kit.side("b.jsonl", {"writes-json": [2, 3, 1], "keeps": [1, 2, 2]}, passed=True, tokens=140)
    result = kit.compare(*both("--output", "out/deep/c.jsonl"))
    lines = result.stdout.splitlines()
    assert result.exit_code == 0, result.stderr
    assert lines[0] == "Compare  a.jsonl → b.jsonl   judge gpt-5.6-terra"
    assert lines[1:3] == ["  ▲ writes-json   +0.47   2W 1T 0L", "  ▼ keeps         -0.13   0W 2T 1L"]
    assert lines[3] == "  mean +0.17  95% CI [-0.34, +0.67]   win rate 33.3%   6 trials, 0 errored, 0 unmatched"
    assert lines[4] == "  verdicts: 6 fixed, 0 broken (McNemar p = 0.03)"
    assert lines[5].startswith("  tokens +40 (+40%)   turns +0.0")
    assert "No credible difference (underpowered)" in lines
    assert lines[-1] == "Saved comparison → out/deep/c.jsonl"
    (record,) = map(json.loads, (kit.root / "out/deep/c.jsonl").read_text().splitlines())
    assert (record["type"], record["baseline"], record["treatment"]) == ("comparison", "a.jsonl", "b.jsonl")
    assert [item["stimulusName"] for item in record["stimuli"]] == ["writes-json", "keeps"]


@pytest.mark.parametrize(
    ("better", "words", "closing", "exit_code"),
    [
        (5, (), "Credibly better", 0),
        (5, ("--fail-on-regression",), "Credibly better", 0),
        (1, (), "Credibly worse", 0),
        (1, ("--fail-on-regression",), "Credibly worse", 1),
        (2, ("--fail-on-regression", "--min-effect", "0.5"), "No credible difference", 0),
        (3, ("--fail-on-regression",), "No credible difference", 0),
    ],
)
def test_closing_words_and_the_gate(
    kit: Comparisons, better: int, words: tuple[str, ...], closing: str, exit_code: int
) -> None:
    stimuli = [f"s{number}" for number in range(8)]
    kit.side("a.jsonl", {name: [3, 3] for name in stimuli})
    kit.side("b.jsonl", {name: [better, better] for name in stimuli})
    result = kit.compare(*both(*words))
    assert (result.exit_code, closing) == (
        exit_code,
        next(x for x in result.stdout.splitlines() if x.startswith(closing[:4])).removesuffix(" (underpowered)"),
    )


def test_a_judge_that_prefers_the_first_position_yields_ties(kit: Comparisons) -> None:
    kit.side("a.jsonl", {"s": [1, 1, 1]})
    kit.side("b.jsonl", {"s": [9, 9, 9]})
    summary = kit.compared(judge=kit.first_wins)["summary"]
    assert (summary["ties"], summary["meanScore"], summary["erroredCount"]) == (3, 0, 0)


def test_a_judge_that_fails_is_reported_and_not_counted(kit: Comparisons) -> None:
    kit.side("a.jsonl", {"s": [1, 1, 1], "t": [9, 1]})
    kit.side("b.jsonl", {"s": [2, 9, 2], "t": [1, 2]})
    record = kit.compared(judge=kit.fails_on_nines)
    summary = record["summary"]
    assert (summary["trialCount"], summary["erroredCount"], summary["wins"]) == (3, 2, 3)
    assert (summary["meanScore"], summary["winRate"]) == (pytest.approx(0.4), 1)
    failed = [trial for item in record["stimuli"] for trial in item["trials"] if trial.get("errored")]
    assert [(trial["score"], trial["winner"]) for trial in failed] == [(0, "tie")] * 2
    assert "the endpoint is away" in failed[0]["evidence"]


def test_when_every_comparison_errors_the_record_is_written_and_the_exit_code_is_1(kit: Comparisons) -> None:
    kit.side("a.jsonl", {"s": [9, 9]})
    kit.side("b.jsonl", {"s": [1, 1]})
    result = kit.compare(*both("--output", "c.jsonl"), judge=kit.fails_on_nines)
    summary = json.loads((kit.root / "c.jsonl").read_text())["summary"]
    assert result.exit_code == 1
    assert (summary["trialCount"], summary["meanScore"], summary["ciLow"], summary["ciHigh"]) == (0, 0, None, None)
    assert "Inconclusive" in result.stdout
    assert "  mean n/a  95% CI n/a   win rate n/a   0 trials, 2 errored, 0 unmatched" in result.stdout.splitlines()
    evidence = json.loads((kit.root / "c.jsonl").read_text())["stimuli"][0]["trials"][0]["evidence"]
    assert evidence
    assert f"every comparison errored, the first with: {evidence}" in result.stderr
    assert f"⚠ s (trial 0)  {evidence}" in result.stderr


def test_a_single_pair_gives_no_bounds(kit: Comparisons) -> None:
    kit.side("a.jsonl", {"s": [1]}, evalFilePath="one.yaml")
    kit.side("b.jsonl", {"s": [3]}, evalFilePath="other.yaml")
    record = kit.compared("--fail-on-regression")
    assert (record["summary"]["ciLow"], record["summary"]["ciHigh"]) == (None, None)
    assert record["summary"]["trialCount"] == 1


def test_leftovers_and_errored_trials_are_listed(kit: Comparisons) -> None:
    kit.write("a.jsonl", [kit.record("s", 0, 1), kit.record("s", 1, 1), kit.record("gone", 0, 1)])
    kit.write("b.jsonl", [kit.record("s", 0, 2), kit.record("s", 1, 2, status="error"), kit.record("new", 4, 1)])
    record = kit.compared()
    assert record["unmatchedBaseline"] == ["s (trial 1)", "gone (trial 0)"]
    assert record["unmatchedTreatment"] == ["s (trial 1)", "new (trial 4)"]
    assert record["summary"]["trialCount"] == 1


def test_work_that_a_limit_cut_is_shown_and_not_averaged(kit: Comparisons) -> None:
    kit.write("a.jsonl", [kit.record("s", 0, 1), kit.record("s", 1, 1), kit.record("s", 2, 1)])
    kit.write("b.jsonl", [kit.record("s", 0, 2), kit.record("s", 1, 9, end="agent_timeout"), kit.record("s", 2, 2)])
    record = kit.compared()
    assert record["censored"] == ["s (trial 1): treatment agent_timeout"]
    assert (record["summary"]["trialCount"], record["summary"]["meanScore"]) == (2, pytest.approx(0.4))
    result = kit.compare(*both())
    assert "2 trials, 0 errored, 0 unmatched, 1 censored" in result.stdout
    assert "cut by a limit, not compared: s (trial 1): treatment agent_timeout" in result.stdout


def test_untyped_records_without_index_pair_by_order(kit: Comparisons) -> None:
    fields = ("type", "itemId", "trialIndex", "totalTrials", "runId", "status")
    for name, quality in (("a.jsonl", 1), ("b.jsonl", 2)):
        records = [kit.record("s", 0, quality) for _ in range(2)]
        kit.write(name, [{key: value for key, value in item.items() if key not in fields} for item in records])
    assert kit.compared()["summary"]["wins"] == 2


def test_equal_names_are_told_apart_by_model_then_by_eval(kit: Comparisons) -> None:
    for name, quality in (("a.jsonl", 1), ("b.jsonl", 2)):
        kit.write(name, [kit.record("s", 0, quality, model=model) for model in ("m1", "m2")])
    assert [item["stimulusName"] for item in kit.compared()["stimuli"]] == ["s [m1]", "s [m2]"]
    for name, quality in (("a.jsonl", 1), ("b.jsonl", 2)):
        kit.write(name, [kit.record("s", 0, quality, evalName=e, evalFilePath=e) for e in ("e1", "e2")])
    assert [item["stimulusName"] for item in kit.compared()["stimuli"]] == ["s [e1]", "s [e2]"]


def test_names_that_cannot_be_told_apart_are_an_error(kit: Comparisons) -> None:
    kit.write("a.jsonl", [kit.record("s", 0, 1, model=model) for model in ("m1", "m2")])
    kit.write("b.jsonl", [kit.record("s", 0, 1, model=model) for model in ("m1", "m3")])
    result = kit.compare(*both())
    assert result.exit_code == 1
    assert "error: a.jsonl: 's' (trial 0) occurs more than once" in result.stderr
    assert "cut slices" in result.stderr


@pytest.mark.parametrize(
    ("words", "exit_code", "message"),
    [
        ((), 2, "name an experiment directory, or --baseline and --treatment"),
        (("--baseline", "a.jsonl"), 2, "--treatment is missing"),
        (("--treatment", "a.jsonl"), 2, "--baseline is missing"),
        (("x", "--baseline", "a.jsonl"), 2, "exclude each other"),
        (("--baseline", "a.jsonl", "--treatment", "b.jsonl", "--variant", "v"), 2, "--variant needs an experiment"),
        (("--baseline", "a.jsonl", "--treatment", "none.jsonl"), 1, "--treatment: no run directory"),
        (("--baseline", "a.jsonl", "--treatment", "."), 1, "holds no results.jsonl"),
        (("--baseline", "a.jsonl", "--treatment", "empty.jsonl"), 1, "no trial of the baseline pairs"),
        (("--baseline", "a.jsonl", "--treatment", "a.jsonl", "--grader", "contains"), 1, "contains"),
        (("--baseline", "a.jsonl", "--treatment", "a.jsonl", "--grader", "promt"), 1, "did you mean 'prompt'"),
        (("--baseline", "a.jsonl", "--treatment", "a.jsonl", "--min-effect", "2"), 2, "--min-effect"),
        (("nowhere",), 1, "no run directory, results file or run id 'nowhere'"),
    ],
)
def test_wrong_words(kit: Comparisons, words: tuple[str, ...], exit_code: int, message: str) -> None:
    kit.side("a.jsonl", {"s": [1]})
    kit.write("empty.jsonl", [])
    result = kit.compare(*words)
    assert (result.exit_code, message in result.stderr) == (exit_code, True), result.stderr


def test_lines_that_are_no_records_are_warned_about(kit: Comparisons) -> None:
    kit.side("a.jsonl", {"s": [1]})
    path = kit.side("b.jsonl", {"s": [1]})
    path.write_text("{broken\n" + path.read_text() + '{"type": "trial-result", "status": "odd"}\n')
    result = kit.compare(*both())
    assert result.exit_code == 0
    first, second = result.stderr.splitlines()[:2]
    assert first.startswith("warning: b.jsonl:1: not valid JSON")
    assert second.startswith("warning: b.jsonl:3: ")


def test_repeats_of_one_configuration_must_not_differ(kit: Comparisons) -> None:
    stimuli = [f"s{number}" for number in range(8)]
    kit.side("a.jsonl", {name: [3, 3] for name in stimuli})
    kit.side("b.jsonl", {name: [4, 4] for name in stimuli})
    alike = kit.compare("--baseline", "a.jsonl", "--treatment", "a.jsonl", "--aa")
    assert alike.exit_code == 0
    different = kit.compare(*both("--aa"))
    assert different.exit_code == 1
    assert "repeats of one configuration differ: the sign test has p = 0.00781" in different.stderr


def test_criteria_come_from_the_stimulus_of_an_eval_spec(kit: Comparisons) -> None:
    kit.side("a.jsonl", {"s": [1]})
    kit.side("b.jsonl", {"s": [2]})
    grader = {"type": "prompt", "config": {"prompt": "Judge the tone."}}
    stimulus = {"name": "s", "prompt": "p", "rubric": ["It is short."], "graders": [grader]}
    (kit.root / "eval.yaml").write_text(json.dumps({"name": "e", "stimuli": [stimulus]}))
    (trial,) = kit.compared("--eval-spec", "eval.yaml")["stimuli"][0]["trials"]
    assert [item["criterion"] for item in trial["criteria"]] == ["It is short.", "Judge the tone."]


def test_the_judge_is_the_one_the_baseline_recorded(kit: Comparisons) -> None:
    seen: list[tuple[str, str | None]] = []

    def judge(request: Any) -> Any:
        seen.append((request.model, request.reasoning_effort))
        return kit.first_wins(request)

    kit.side("a/results.jsonl", {"s": [1]})
    kit.side("b/results.jsonl", {"s": [1]})
    defaults = {"judge_model": "recorded", "judge_reasoning_effort": "high"}
    (kit.root / "a/run-manifest.json").write_text(json.dumps({"specs": [{"path": "e.yaml", "defaults": defaults}]}))
    kit.compare("--baseline", "a", "--treatment", "b", judge=judge)
    kit.compare("--baseline", "a", "--treatment", "b", "--judge-model", "mine", judge=judge)
    assert seen == [("recorded", "high")] * 2 + [("mine", "high")] * 2


def judged_by(seen: list[Any]) -> Any:
    def judge(request: Any) -> Any:
        seen.append((request.model, request.reasoning_effort))
        raise JudgeError("no key", kind="unavailable")

    return judge


def test_without_a_recorded_judge_a_spec_names_one(kit: Comparisons) -> None:
    seen: list[Any] = []
    for name in ("a", "b"):
        kit.side(f"{name}/results.jsonl", {"s": [1]})
    stimuli = [{"name": "s", "prompt": "p", "graders": [{"type": "completed"}]}]
    for name in ("other", "e"):
        provider = {"type": "scripted", "baseUrl": "http://127.0.0.1:9/v1"}
        defaults = {"judge_model": f"of-{name}", "judge_reasoning_effort": "low", "judge_provider": provider}
        (kit.root / f"{name}.yaml").write_text(json.dumps({"name": name, "defaults": defaults, "stimuli": stimuli}))
    sides = ("--baseline", "a", "--treatment", "b")
    scripted = ScriptedJudge(judged_by(seen)).record("scripted", provider_types=("scripted",))
    named = kit.compare(*sides, "-e", "e.yaml", "-e", "other.yaml", plugins=[scripted])
    built_in = kit.compare(*sides, judge=judged_by(seen))
    recorded = {"specs": [{"path": "e.yaml", "defaults": {"judge_model": "recorded"}}]}
    (kit.root / "a/run-manifest.json").write_text(json.dumps(recorded))
    kept = kit.compare(*sides, "-e", "e.yaml", judge=judged_by(seen))
    assert list(dict.fromkeys(seen)) == [("of-e", "low"), ("gpt-5.6-terra", None), ("recorded", None)]
    assert "  the judge was 'of-e' with judge_provider 'scripted', as e.yaml says\n" in named.stderr
    assert "with no judge_provider, because neither baseline nor spec names another\n" in built_in.stderr
    assert built_in.stderr.endswith("under defaults of a spec and name it with --eval-spec\n")
    assert "as the baseline recorded it\n" in kept.stderr
    assert "run the baseline again with another judge" in kept.stderr
    assert [item.exit_code for item in (named, built_in, kept)] == [1, 1, 1]


def test_verdicts_are_compared_without_a_judge(kit: Comparisons) -> None:
    kit.side("a.jsonl", {"s": [9, 9]}, passed=False)
    kit.side("b.jsonl", {"s": [9, 9]}, passed=True)
    result = kit.compare(*both(), judge=kit.fails_on_nines)
    assert result.exit_code == 1
    assert "  verdicts: 2 fixed, 0 broken (McNemar p = 0.50)" in result.stdout.splitlines()


ANSWERS = {
    "garbage": "better",
    "two winners": CompareResult(winner="baseline", magnitude="much-better", score=0.3, evidence="e"),
    "no winner": CompareResult(winner="tie", magnitude="equal", score=-0.4, evidence="e"),
    "no number": CompareResult(winner="tie", magnitude="equal", score=math.nan, evidence="e"),
}


class Broken:
    """Graders that compare in wrong ways."""

    def grade(self, input: Any) -> Any:
        raise AssertionError("comparing does not grade")

    def compare(self, input: CompareInput[Any]) -> Any:
        if input.stimulus.name == "raises":
            raise SystemExit(3)
        return ANSWERS.get(
            input.stimulus.name,
            CompareResult(winner="treatment", magnitude="much-better", score=1.0, evidence="fine"),
        )


def test_a_grader_of_a_plugin_compares_and_its_faults_are_errors(kit: Comparisons) -> None:
    names = ("raises", *ANSWERS, "fine")
    kit.side("a.jsonl", {name: [1] for name in names})
    kit.side("b.jsonl", {name: [1] for name in names})
    spec = GraderSpec(name="broken", summary="compares", factory=Broken, comparable=True)
    record = kit.compared("--grader", "broken", plugins=[spec])
    assert (record["summary"]["trialCount"], record["summary"]["erroredCount"]) == (1, 5)
    evidence = {item["stimulusName"]: item["trials"][0]["evidence"] for item in record["stimuli"]}
    invalid = "grader 'broken' returned an invalid result: "
    assert evidence == {
        "raises": "SystemExit: 3",
        "garbage": "grader 'broken' returned str, not a CompareResult",
        "two winners": f"{invalid}winner 'baseline', magnitude 'much-better' and score 0.3 contradict each other",
        "no winner": f"{invalid}winner 'tie', magnitude 'equal' and score -0.4 contradict each other",
        "no number": f"{invalid}score nan is not a number from -1 to 1",
        "fine": "fine",
    }


def test_hostile_text_reaches_no_terminal(kit: Comparisons) -> None:
    name = "\x1b[31mred\x07 ::error::x"
    kit.side("a.jsonl", {name: [1]})
    kit.side("b.jsonl", {name: [2]})
    result = kit.compare(*both("--verbose"), env={"GITHUB_ACTIONS": "true"})
    assert "\x1b" not in result.stdout
    assert "::stop-commands::" in result.stdout.splitlines()[0]


def test_records_on_stdout_leave_the_report_to_stderr(kit: Comparisons) -> None:
    kit.side("a.jsonl", {"s": [1]})
    result = kit.compare("--baseline", "a.jsonl", "--treatment", "a.jsonl", "--output", "-")
    assert [json.loads(line)["type"] for line in result.stdout.splitlines()] == ["comparison"]
    assert "Compare  a.jsonl" in result.stderr


def test_stimuli_and_trials_come_in_the_order_of_the_plan(kit: Comparisons) -> None:
    """Lines stand in the order in which trials ended, which says nothing."""
    ended = [("second", 1), ("first", 2), ("third", 0), ("first", 0), ("second", 0), ("first", 1)]
    names = [{"name": name} for name in ("first", "second")]
    evals = [{"name": "e", "evalFilePath": "e.yaml", "variant": "main", "model": "m", "stats": {"stimuli": names}}]
    summary = {"type": "run-summary", "runId": "r", "evals": evals}
    trials = [kit.record(name, index, 3) for name, index in ended]
    kit.write("a.jsonl", [*trials, summary])
    kit.write("b.jsonl", trials)
    record = kit.compared()
    order = [(item["stimulusName"], [trial["trialIndex"] for trial in item["trials"]]) for item in record["stimuli"]]
    assert order == [("first", [0, 1, 2]), ("second", [0, 1]), ("third", [0])]


def test_a_name_pairs_however_its_letters_are_composed(kit: Comparisons) -> None:
    kit.side("a.jsonl", {"caf\u00e9": [1]})
    kit.side("b.jsonl", {"cafe\u0301": [2]})
    record = kit.compared()
    assert (record["summary"]["trialCount"], record["unmatchedBaseline"]) == (1, [])


def test_a_workflow_gets_a_table(kit: Comparisons) -> None:
    kit.side("a|b.jsonl", {"s1": [1, 1], "s2": [1, 9], "gone": [1]})
    kit.side("c.jsonl", {"s1": [2, 2], "s2": [2, 2]})
    environ = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(kit.root / "summary.md")}
    words = ("--baseline", "a|b.jsonl", "--treatment", "c.jsonl")
    result = kit.compare(*words, judge=kit.fails_on_nines, env=environ)
    assert result.exit_code == 0, result.stderr
    heading, empty, head, _, row, *end = (kit.root / "summary.md").read_text().split("\n")
    assert (heading, empty, end) == ("## Comparison (judge gpt-5.6-terra)", "", ["", ""])
    assert head == "| Baseline | Treatment | Eval | Mean | 95% CI | W/T/L | Errored | Unmatched | Verdict |"
    assert row == "| a\\|b.jsonl | c.jsonl | – | +0.40 | [+0.40, +0.40] | 3/0/0 | 1 | 1 | Credibly better |"
    before = (kit.root / "summary.md").read_text()
    kit.compare(*words, env={**environ, "GITHUB_ACTIONS": ""})
    assert (kit.root / "summary.md").read_text() == before
