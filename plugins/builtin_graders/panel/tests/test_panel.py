"""`panel`: several judges and their aggregate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import (
    GraderResult,
    JudgeError,
    JudgeReply,
    JudgeRequest,
    Stimulus,
    Trajectory,
    grade_trajectory,
    has_grader_error,
    resolve_grade_pass,
)
from vally.testing import ScriptedJudge, event, grade, plugin_host, trajectory

RUN = trajectory(event("assistant_message", content="Hello."))
MODELS = ["a", "b", "c"]
FAILED = JudgeError("down", kind="transport")


def graded(overall: float, *scores: float, reasoning: str = "Good") -> dict[str, Any]:
    """Arguments of a call, on the scale from 1 to 5; without `scores` those of two criteria."""
    return {
        "rubric_scores": [
            {"criterion": f"criterion {number}", "score": score, "reasoning": f"because {number}"}
            for number, score in enumerate(scores or (overall, overall), 1)
        ],
        "overall_score": overall,
        "overall_reasoning": reasoning,
    }


def judge_of(scores: Mapping[str, float | Exception], **fields: Any) -> ScriptedJudge:
    """A judge whose models give these normalised scores."""

    def answer(request: JudgeRequest) -> Any:
        score = scores[request.model]
        return score if isinstance(score, Exception) else graded(1 + 4 * score)

    return ScriptedJudge(answer, **fields)


def panel(record: Any, scores: Sequence[float | Exception], **config: Any) -> GraderResult:
    models = MODELS[: len(scores)]
    judge = judge_of(dict(zip(models, scores, strict=True)))
    return grade(record, {"models": models, **config}, RUN, judge=judge)


@pytest.mark.parametrize(
    ("aggregation", "scores", "passed", "score", "evidence"),
    [
        pytest.param(
            "mean",
            [0.75, 0.5, 1],
            True,
            0.75,
            "PASS via mean aggregation across 3 judge(s): a=0.75, b=0.50, c=1.00 → 0.75",
            id="PN-1",
        ),
        pytest.param(
            "median",
            [0.25, 0.5],
            False,
            0.375,
            "FAIL via median aggregation across 2 judge(s): a=0.25, b=0.50 → 0.38",
            id="PN-2",
        ),
        pytest.param(
            "min",
            [1, 0.25],
            False,
            0.25,
            "FAIL via min aggregation across 2 judge(s): a=1.00, b=0.25 → 0.25",
            id="PN-3",
        ),
        pytest.param(
            "majority",
            [0.75, 0.75, 0.25],
            True,
            2 / 3,
            "PASS via majority aggregation across 3 judge(s): a=0.75, b=0.75, c=0.25 → 0.67",
            id="PN-4",
        ),
        pytest.param(
            "majority",
            [0.75, 0.25],
            False,
            0.5,
            "FAIL via majority aggregation across 2 judge(s): a=0.75, b=0.25 → 0.50",
            id="PN-5",
        ),
        pytest.param(
            "mean",
            [0.75, FAILED, 0.5],
            True,
            0.625,
            "PASS via mean aggregation across 2 judge(s): a=0.75, c=0.50 → 0.63 (1 judge(s) failed: b)",
            id="PN-6",
        ),
        pytest.param(
            "median",
            [0.25, 1, 0.5],
            True,
            0.5,
            "PASS via median aggregation across 3 judge(s): a=0.25, b=1.00, c=0.50 → 0.50",
            id="median-of-three",
        ),
        pytest.param(
            "unanimous",
            [0.75, 0.5],
            True,
            0.5,
            "PASS via unanimous aggregation across 2 judge(s): a=0.75, b=0.50 → 0.50",
            id="unanimous",
        ),
        pytest.param(
            "unanimous",
            [1, 0.25],
            False,
            0.25,
            "FAIL via unanimous aggregation across 2 judge(s): a=1.00, b=0.25 → 0.25",
            id="not-unanimous",
        ),
        pytest.param(
            "unanimous",
            [1, FAILED],
            False,
            1,
            "FAIL via unanimous aggregation across 1 judge(s): a=1.00 → 1.00 (1 judge(s) failed: b)",
            id="unanimous-with-a-failure",
        ),
        pytest.param(
            "majority",
            [0.75, FAILED, FAILED],
            True,
            1,
            "PASS via majority aggregation across 1 judge(s): a=0.75 → 1.00 (2 judge(s) failed: b, c)",
            id="majority-of-survivors",
        ),
    ],
)
def test_aggregation(
    aggregation: str, scores: list[Any], passed: bool, score: float, evidence: str, record: Any
) -> None:
    result = panel(record, scores, aggregation=aggregation)
    assert (result.passed, result.score, result.evidence) == (passed, pytest.approx(score), evidence)
    assert (result.name, result.kind, result.status) == ("panel", "llm", None)


def test_a_failed_judge_does_not_void_the_verdict_but_is_an_error_of_the_run(record: Any) -> None:
    """PN-6: the run exits 1."""
    judge = judge_of({"a": 0.75, "b": FAILED, "c": 0.5})
    entry = {"type": "panel", "config": {"models": MODELS}}
    verdict = grade_trajectory(RUN, [entry], host=plugin_host(record), judge=judge)
    assert (resolve_grade_pass(verdict), has_grader_error(verdict)) == (True, True)


def test_all_judges_failed(record: Any) -> None:
    """PN-7."""
    result = panel(record, [FAILED, JudgeError("late", kind="timeout"), JudgeError("key", kind="unavailable")])
    assert (result.status, result.passed, result.score, result.label) == ("error", False, 0, None)
    assert result.evidence == (
        "All 3 panel judges failed: a: Judge call failed: down (model a); "
        "b: Judge timed out after 120s (model b); c: Judge call failed: key (model c)"
    )
    assert [item.status for item in result.details or ()] == ["error"] * 3
    metadata = result.metadata or {}
    assert (metadata["error"]["kind"], metadata["scores"], "spread" in metadata) == ("judge", {}, False)


def test_details(record: Any) -> None:
    stimulus = Stimulus(name="s", prompt="p", turns=("p",), rubric=("Is short.",))
    judge = ScriptedJudge(lambda request: FAILED if request.model == "b" else graded(3, 5, reasoning=" "))
    config = {"models": ["a", "b"], "reasoning_effort": "low"}
    first, second = grade(record, config, RUN, judge=judge, stimulus=stimulus).details or ()
    assert (first.name, first.kind, first.score, first.passed) == ("panel/a", "llm", 0.5, True)
    assert (first.evidence, first.grader_type) == ("(no reasoning given)", "panel")
    assert first.metadata == {
        "model": "a",
        "reasoningEffort": "low",
        "scoring": "scale_1_5",
        "threshold": 0.5,
        "evidence": ["trajectory"],
        "rawScore": 3,
        "tokenUsage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15},
        "latencyMs": 0,
        "remindersUsed": 0,
    }
    (criterion,) = first.details or ()
    assert (criterion.name, criterion.score, criterion.evidence) == ("panel/a/Is short.", 1.0, "because 1")
    assert (second.name, second.status, second.evidence) == ("panel/b", "error", "Judge call failed: down (model b)")
    assert (second.kind, (second.metadata or {})["model"]) == ("llm", "b")


def test_metadata(record: Any) -> None:
    result = panel(record, [0.25, 1, FAILED], aggregation="median", threshold=0.25, evidence=["trajectory", "diff"])
    assert result.metadata == {
        "aggregation": "median",
        "scores": {"a": 0.25, "b": 1.0},
        "spread": 0.75,
        "threshold": 0.25,
        "evidence": ["trajectory", "diff"],
    }


def test_repeated_models_are_numbered(record: Any) -> None:
    replies = iter([graded(5), graded(3), graded(1)])
    judge = ScriptedJudge(lambda _: next(replies))
    result = grade(record, {"models": ["a", "b", "a"], "aggregation": "min"}, RUN, judge=judge)
    assert (result.metadata or {})["scores"] == {"a #1": 1.0, "b": 0.5, "a #2": 0.0}
    assert [item.name for item in result.details or ()] == ["panel/a #1", "panel/b", "panel/a #2"]
    assert result.evidence == "FAIL via min aggregation across 3 judge(s): a #1=1.00, b=0.50, a #2=0.00 → 0.00"


def test_every_judge_is_asked_the_same(record: Any, tmp_path: Path) -> None:
    judge = judge_of({"a": 1, "b": 1, "c": 1}, supports_files=True)
    models = ["a", {"model": "b"}, {"model": "c", "reasoning_effort": "max"}]
    config = {"models": models, "reasoning_effort": "low", "prompt": "Be strict.", "evidence": ["diff"]}
    grade(record, config, RUN.model_copy(update={"diff": "+1\n"}), judge=judge, seed=5)
    assert [(item.model, item.reasoning_effort) for item in judge.requests] == [
        ("a", "low"),
        ("b", "low"),
        ("c", "max"),
    ]
    first, *others = judge.requests
    assert "# Further instructions\n\nBe strict.\n" in first.user_message
    assert [path.name for path in first.evidence_files] == ["workspace.diff"]
    for other in others:
        assert (other.system_message, other.user_message, other.tool, other.evidence_files, other.seed) == (
            first.system_message,
            first.user_message,
            first.tool,
            first.evidence_files,
            5,
        )


class Meeting(ScriptedJudge):
    """Answers when all members were asked."""

    def __init__(self, members: int) -> None:
        super().__init__({})
        self._members = members
        self._all_here = anyio.Event()

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        self.requests.append(request)
        if len(self.requests) == self._members:
            self._all_here.set()
        with anyio.fail_after(30):
            await self._all_here.wait()
        return JudgeReply(args=graded(5), model=request.model)


def test_judges_run_at_the_same_time(record: Any) -> None:
    assert grade(record, {"models": MODELS}, RUN, judge=Meeting(3)).evidence.startswith("PASS")


CRITERIA = [
    {"name": "Correct", "description": " does what was asked ", "weight": 3},
    {"name": "Short", "pass_threshold": 0.75},
]


def of_criteria(record: Any, scores: Sequence[tuple[float, float]], **config: Any) -> GraderResult:
    replies = iter(graded(1, *(1 + 4 * score for score in pair)) for pair in scores)
    judge = ScriptedJudge(lambda _: next(replies))
    models = MODELS[: len(scores)]
    return grade(record, {"models": models, "criteria": CRITERIA, **config}, RUN, judge=judge)


def test_criteria_replace_the_rubric(record: Any, caplog: pytest.LogCaptureFixture) -> None:
    judge = ScriptedJudge(graded(1, 5, 3))
    stimulus = Stimulus(name="s", prompt="p", turns=("p",), rubric=("Unused.",))
    result = grade(record, {"models": "a", "criteria": CRITERIA}, RUN, judge=judge, stimulus=stimulus)
    message = judge.requests[0].user_message
    assert "# Criteria\n\n1. Correct: does what was asked\n2. Short\n\n# Scale" in message
    (detail,) = result.details or ()
    assert [item.name for item in detail.details or ()] == ["panel/a/Correct", "panel/a/Short"]
    assert caplog.records == []


@pytest.mark.parametrize(
    ("scores", "config", "passed", "score", "end"),
    [
        ([(1, 0.75)], {}, True, 0.9375, "a=0.94 → 0.94"),
        ([(1, 0.5)], {}, False, 0.875, "a=0.88 → 0.88 (criteria missed: Short 0.50 misses 0.75)"),
        ([(0, 1)], {}, False, 0.25, "a=0.25 → 0.25"),
        ([(1, 1), (1, 0.5)], {}, True, 0.9375, "a=1.00, b=0.88 → 0.94"),
        (
            [(1, 1), (1, 0.5)],
            {"aggregation": "min"},
            False,
            0.875,
            "a=1.00, b=0.88 → 0.88 (criteria missed: Short 0.50 misses 0.75)",
        ),
        (
            [(1, 1), (1, 0.5)],
            {"aggregation": "majority"},
            False,
            1,
            "a=1.00, b=0.88 → 1.00 (criteria missed: Short 0.50 misses majority)",
        ),
        ([(1, 1), (1, 1), (1, 0)], {"aggregation": "majority"}, True, 1, "a=1.00, b=1.00, c=0.75 → 1.00"),
    ],
)
def test_criteria_have_weights_and_thresholds(
    scores: list[tuple[float, float]], config: dict[str, Any], passed: bool, score: float, end: str, record: Any
) -> None:
    result = of_criteria(record, scores, **config)
    assert (result.passed, result.score) == (passed, pytest.approx(score))
    assert result.evidence.split("judge(s): ")[1] == end


def test_details_of_criteria_know_their_own_threshold(record: Any) -> None:
    (detail,) = of_criteria(record, [(0.5, 0.5)]).details or ()
    assert [item.passed for item in detail.details or ()] == [True, False]


def test_the_overall_score_of_a_judge_is_not_used_with_criteria(record: Any) -> None:
    (detail,) = of_criteria(record, [(1, 1)]).details or ()
    assert (detail.score, (detail.metadata or {})["rawScore"]) == (1.0, 1)


def test_the_older_spelling_of_the_threshold(record: Any) -> None:
    result = panel(record, [0.75], overall_threshold=0.8)
    assert (result.passed, (result.metadata or {})["threshold"]) == (False, 0.8)


@pytest.mark.parametrize(
    ("run", "judge", "evidence"),
    [
        (trajectory(), judge_of({"a": 1}), "No evidence to grade: trajectory resolved to nothing"),
        (RUN, None, "No judge client is configured"),
    ],
    ids=["no-evidence", "no-judge"],
)
def test_nothing_to_ask(run: Trajectory, judge: ScriptedJudge | None, evidence: str, record: Any) -> None:
    result = grade(record, {"models": "a"}, run, judge=judge)
    assert (result.status, result.evidence, result.name) == ("error", evidence, "panel")
    assert result.metadata == {"error": {"kind": "judge", "message": evidence}}


def test_turn_and_scope(record: Any) -> None:
    run = trajectory(
        event("user_message", content="1", turn=0),
        event("assistant_message", content="one", turn=0),
        event("user_message", content="2", turn=1),
        event("assistant_message", content="two", turn=1, agent_id="sub"),
        turns=["1", "2"],
    )
    judge = judge_of({"a": 1})
    assert grade(record, {"models": "a"}, run, judge=judge, turn=1, scope="subagents").passed
    assert "[0] assistant_message (agent sub)\n    two\n\n# Output" in judge.requests[0].user_message
    narrowed = grade(record, {"models": "a", "evidence": ["diff"]}, run, judge=judge, turn=1)
    assert narrowed.evidence == "Invalid config for panel: 'turn' is not supported"
