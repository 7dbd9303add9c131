"""Graders and judges that misbehave: an error result, never a score, and a record of what the agent did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from programs import SAYS_HELLO, check_closed, evaluate, finish, records_of, start, write_spec

from vally import GraderSpec, JudgeError
from vally.testing import CliResult, ScriptedJudge, run_cli

pytestmark = pytest.mark.heavy


def bad(word: str, keyword: str = "bad") -> dict[str, Any]:
    return {"type": keyword, "config": {"do": word}}


def graded(root: Path, *graders: dict[str, Any], words: tuple[str, ...] = (), **keys: Any) -> CliResult:
    write_spec(root, [{"name": "s", "prompt": "fine", "graders": list(graders)}], **keys)
    return evaluate(root, *words)


RESULTS = {
    "raise": "Grader execution error: no such device",
    "unprintable": "Grader execution error: Unprintable",
    "exit": "Grader execution error: SystemExit: 0",
    "none": "Grader returned an invalid result: expected a GraderResult, got NoneType",
    "mapping": "Grader returned an invalid result: ",
    "nan": "Grader returned an invalid result: score is not a number",
    "two": "Grader returned an invalid result: score 2 is outside 0..1",
    "minus": "Grader returned an invalid result: score -0.5 is outside 0..1",
    "text-score": "Grader",
    "no-score": "Grader",
    "no-evidence": "Grader returned an invalid result: ",
    "own-detail": "Grader execution error: ",
}


@pytest.mark.parametrize("word", RESULTS)
def test_a_grader_that_fails_is_an_error_and_no_score(tmp_path: Path, word: str) -> None:
    result = graded(tmp_path, bad(word), SAYS_HELLO)
    assert result.exit_code == 1
    summary = check_closed(result.records, 1)
    assert (summary["hadExecutionErrors"], summary["passed"]) == (True, False)
    record = result.records[0]
    assert record["status"] == "success"
    failed, good = record["gradeResult"]["details"]
    assert failed["status"] == "error"
    assert failed["evidence"].startswith(RESULTS[word])
    assert failed["metadata"]["error"]["kind"] == "exception"
    assert "label" not in failed or failed["label"] is None
    assert good["passed"] is True


@pytest.mark.parametrize("word", ["cancel", "exit"])
def test_a_grader_that_ends_its_own_task_is_an_error(tmp_path: Path, word: str) -> None:
    result = graded(tmp_path, bad(word, "abad"), SAYS_HELLO)
    assert result.exit_code == 1
    failed, good = result.records[0]["gradeResult"]["details"]
    assert (failed["status"], good["passed"]) == ("error", True)


def test_metadata_that_contains_itself_is_recorded(tmp_path: Path) -> None:
    result = graded(tmp_path, bad("cyclic"))
    assert result.exit_code == 0
    assert result.records[0]["gradeResult"]["details"][0]["metadata"]["self"]["self"] == "dict"


@pytest.mark.parametrize("word", ["name-raise", "name-exit"])
def test_a_name_that_cannot_be_made_is_a_warning(tmp_path: Path, word: str) -> None:
    result = graded(tmp_path, bad(word), SAYS_HELLO)
    assert result.exit_code == 0
    record = result.records[0]
    assert record["gradeResult"]["details"][0]["name"] == "bad"
    assert any("default_name of grader 'bad' failed" in text for text in record["warnings"])


def test_a_grader_cannot_change_the_record_of_the_agent(tmp_path: Path) -> None:
    result = graded(tmp_path, bad("mutate"), bad("fine"))
    assert result.exit_code == 0
    trajectory = result.records[0]["trajectory"]
    assert trajectory["output"] == "hello"
    assert [item["type"] for item in trajectory["events"]] == ["user_message", "assistant_message"]
    assert "forged" not in trajectory["metadata"]


def test_a_factory_that_raises_stops_the_run_before_any_agent(tmp_path: Path) -> None:
    def factory() -> Any:
        raise OSError("no such device")

    write_spec(tmp_path, [{"name": "s", "prompt": "fine", "graders": [{"type": "unmakeable"}]}])
    broken = GraderSpec(name="unmakeable", summary="cannot be made", factory=factory)
    result = evaluate(tmp_path, plugins=[broken])
    assert result.exit_code == 1
    assert "OSError: no such device" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("keyword", ["bad", "abad"], ids=["thread", "task"])
def test_the_grading_budget_ends_a_grader_that_hangs(tmp_path: Path, keyword: str) -> None:
    graders = [bad("hang", keyword), SAYS_HELLO]
    write_spec(tmp_path, [{"name": "s", "prompt": "fine", "graders": graders}], scoring={"timeout": "300ms"})
    code, _, err = finish(start(tmp_path))
    assert code == 1, err
    records = records_of(tmp_path)
    check_closed(records, 1)
    failed, good = records[0]["gradeResult"]["details"]
    assert failed["evidence"] == "Grading timed out after 300ms"
    assert failed["metadata"]["error"]["kind"] == "deadline"
    assert good["passed"] is True


SCORED = {"type": "prompt", "config": {"prompt": "Is it good?"}}
REPLIES: dict[str, list[Any]] = {
    "malformed": ["no call"] * 9,
    "unavailable": [],
    "timeout": [JudgeError("no answer", kind="timeout")],
    "raises": [OSError("no such device")],
    "exits": [SystemExit(0)],
}


@pytest.mark.parametrize("case", REPLIES)
def test_a_judge_that_fails_is_an_error_and_no_score(tmp_path: Path, case: str) -> None:
    judge = ScriptedJudge(REPLIES[case])
    write_spec(tmp_path, [{"name": "s", "prompt": "fine", "graders": [SCORED, SAYS_HELLO]}])
    result = evaluate(tmp_path, plugins=[judge.record()])
    assert result.exit_code == 1
    record = result.records[0]
    failed, good = record["gradeResult"]["details"]
    assert failed["status"] == "error"
    assert failed["metadata"]["error"]["kind"] == "judge"
    assert good["passed"] is True
    summary = check_closed(result.records, 1)
    assert (summary["passed"], summary["hadExecutionErrors"], summary["totals"]["errors"]) == (False, True, 1)
    assert judge.shutdowns == 1


def test_what_plugins_print_does_not_get_into_machine_output(tmp_path: Path) -> None:
    write_spec(tmp_path, [{"name": "s", "prompt": "print", "graders": [bad("print")]}])
    for output in ("jsonl", "json"):
        code, out, err = finish(start(tmp_path, "--output", output))
        assert code == 0, err
        assert [json.loads(line)["type"] for line in out.splitlines()] == {
            "jsonl": ["trial-result", "run-summary"],
            "json": ["eval-run"],
        }[output]
        for text in ("printed by an executor", "printed by a grader", "printed by its child"):
            assert text in err


def test_what_plugins_print_is_kept_from_machine_output_in_process_too(tmp_path: Path) -> None:
    from misbehaving import EXECUTORS, GRADERS

    def factory() -> Any:
        print("printed by a factory")

        class Grader:
            def grade(self, _: Any) -> Any:
                print("printed by a grader")
                return {"name": "g", "kind": "code", "passed": True, "score": 1, "evidence": ""}

        return Grader()

    write_spec(tmp_path, [{"name": "s", "prompt": "fine", "graders": [{"type": "noisy"}]}])
    noisy = GraderSpec(name="noisy", summary="prints", factory=factory)
    words = ["eval", "-e", "eval.yaml", "--output", "jsonl"]
    result = run_cli(words, cwd=tmp_path, plugins=[*EXECUTORS, *GRADERS, noisy])
    assert [json.loads(line)["type"] for line in result.stdout.splitlines()] == ["trial-result", "run-summary"]
    assert "printed by a factory" in result.stderr
    assert "printed by a grader" in result.stderr


NAN, FINITE = float("nan"), "a number between -(2^53 - 1) and 2^53 - 1, got .nan"
UNREADABLE = [
    ({"type": "completed", "config": 5}, "'config' must be a mapping, got 5"),
    ({"type": "max-repeat", "config": [1]}, "'config' must be a mapping, got a list"),
    ({"type": "exit-success", "config": {"more": [{"deep": NAN}]}}, f"'more[0].deep' must be {FINITE}"),
    ({"type": "json-path", "config": {"query": "$.a", "equals": NAN}}, f"'equals' must be {FINITE}"),
    ({**SAYS_HELLO, "turn": "0"}, "'turn' must be an integer >= 0"),
    (
        {**SAYS_HELLO, "scope": 5},
        "'scope' must be all, main, subagents, an agent name or {agent: name or list of names}",
    ),
    ({**SAYS_HELLO, "scope": {"agnt": "x"}}, "unknown key 'agnt' in 'scope'"),
    ({**SAYS_HELLO, "scope": "${ABSENT}"}, "'scope' has a placeholder without a value"),
    ({**SAYS_HELLO, "required": "yes"}, "'required' must be true or false"),
    ({**SAYS_HELLO, "weight": -1}, "'weight' must be a number >= 0"),
]


def test_nothing_is_graded_by_what_is_left_of_an_entry(tmp_path: Path) -> None:
    stimuli = [{"name": "s", "prompt": "fine", "graders": [entry for entry, _ in UNREADABLE]}]
    spec = json.dumps({"name": "e", "defaults": {"executor": "mock"}, "stimuli": stimuli}).replace("NaN", ".nan")
    (tmp_path / "eval.yaml").write_text(spec)
    result = evaluate(tmp_path, "--skip-validate")
    assert result.exit_code == 1
    details = result.records[0]["gradeResult"]["details"]
    assert [item["status"] for item in details] == ["error"] * len(UNREADABLE)
    assert [item["metadata"]["error"]["kind"] for item in details] == ["config"] * len(UNREADABLE)
    for (entry, problem), item in zip(UNREADABLE, details, strict=True):
        assert item["evidence"] == f"Invalid config for {entry['type']}: {problem}"
