"""A judge that says something about itself: in every result it has a part in, and once to the user."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vally import JudgeError, JudgeSpec
from vally.testing import CliResult, ScriptedJudge, run_cli

NOTICE = "judge 'demo' is a demonstration"
GRADE = {
    "rubric_scores": [{"criterion": "c", "score": 4, "reasoning": "r"}],
    "overall_score": 4,
    "overall_reasoning": "why",
}


def demo(judge: ScriptedJudge) -> JudgeSpec:
    record = judge.record("demo", provider_types=("demo",))
    return replace(record, metadata={"demo": True}, notice=NOTICE)


def run(root: Path, judge: ScriptedJudge, *words: str, kind: str = "demo") -> CliResult:
    graders: list[dict[str, Any]] = [
        {"type": "prompt"},
        {"type": "panel", "config": {"models": ["a", "b"]}},
        {"type": "output-contains", "config": {"substring": "hi"}},
    ]
    stimuli = [{"name": name, "prompt": "hi", "rubric": ["It is done."], "graders": graders} for name in ("s", "t")]
    defaults = {"executor": "mock", "judge_provider": {"type": kind}}
    (root / "eval.yaml").write_text(json.dumps({"name": "e", "defaults": defaults, "stimuli": stimuli}))
    return run_cli(["eval", "-e", "eval.yaml", *words], cwd=root, plugins=[demo(judge)])


def marks(results: list[dict[str, Any]]) -> list[Any]:
    """What each result and each nested result says, outermost first."""
    found = []
    for result in results:
        found += [(result.get("metadata") or {}).get("demo"), *marks(result.get("details") or [])]
    return found


@pytest.mark.parametrize("reply", [GRADE, [JudgeError("no", kind="transport")] * 6], ids=["grades", "failures"])
def test_every_result_of_the_judge_says_it(reply: Any, tmp_path: Path) -> None:
    result = run(tmp_path, ScriptedJudge(reply))
    details = [record["gradeResult"]["details"] for record in result.records if "gradeResult" in record]
    assert len(details) == 2
    for prompt, panel, other in details:
        assert set(marks([prompt, panel])) == {True}
        assert marks([other]) == [None]


def test_the_run_says_it_once(tmp_path: Path) -> None:
    result = run(tmp_path, ScriptedJudge(GRADE))
    assert result.stderr.splitlines().count(NOTICE) == 1
    assert NOTICE not in result.stdout


def test_a_run_that_asks_no_judge_does_not_say_it(tmp_path: Path) -> None:
    assert NOTICE not in run(tmp_path, ScriptedJudge(GRADE), "--skip-grade").stderr
    assert NOTICE not in run(tmp_path, ScriptedJudge(GRADE), "--dry-run").stderr
