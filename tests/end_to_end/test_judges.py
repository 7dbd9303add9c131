"""Graders that ask judges, in whole runs with a scripted judge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import JudgeError, JudgeReply, JudgeRequest
from vally.testing import CliResult, ScriptedJudge, run_cli


def grade(overall: float, criteria: int = 1) -> dict[str, Any]:
    scores = [{"criterion": "c", "score": overall, "reasoning": "r"}] * criteria
    return {"rubric_scores": scores, "overall_score": overall, "overall_reasoning": "why"}


def run(
    root: Path,
    graders: list[dict[str, Any]],
    *words: str,
    judge: ScriptedJudge | None = None,
    stimulus: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> CliResult:
    (root / "fixtures").mkdir()
    (root / "fixtures" / "s.json").write_text(json.dumps({"files": {"a.txt": "1\n"}, "output": "done"}))
    given = {"name": "s", "prompt": "hi", "rubric": ["It is done."], "graders": graders, **(stimulus or {})}
    defaults = {"executor": {"name": "mock", "config": {"fixtureDir": "fixtures", "strict": True}}}
    document = {"name": "e", "stimuli": [given], **(spec or {})}
    document["defaults"] = {**defaults, **document.get("defaults", {})}
    (root / "eval.yaml").write_text(json.dumps(document))
    plugins = [] if judge is None else [judge.record()]
    return run_cli(["eval", "-e", "eval.yaml", *words], cwd=root, plugins=plugins, env=env)


@pytest.mark.parametrize("config", [{"type": "prompt"}, {"type": "panel", "config": {"models": "a"}}])
def test_without_a_judge_nothing_is_run(config: dict[str, Any], tmp_path: Path) -> None:
    result = run(tmp_path, [config], "--no-plugin", "vally-judge-copilot")
    assert (result.exit_code, result.run_dir) == (1, None)
    assert f"error: eval.yaml: grader '{config['type']}' needs a judge: " in result.stderr
    assert "install a judge plugin, remove the grader, or run with --skip-grade" in result.stderr


def test_without_a_judge_the_agent_can_be_run_alone(tmp_path: Path) -> None:
    result = run(tmp_path, [{"type": "prompt"}], "--skip-grade")
    assert (result.exit_code, result.records[0]["gradeResult"]) == (0, None)


def test_a_judge_grades_and_is_charged(tmp_path: Path) -> None:
    seen: list[dict[str, str]] = []

    def answer(request: JudgeRequest) -> Any:
        root = request.evidence_dir
        assert root is not None
        seen.append({path.relative_to(root).as_posix(): path.read_text() for path in request.evidence_files})
        return "text" if len(seen) == 1 else grade(4)

    graders = [
        {"type": "run-command", "config": {"command": "echo 2 > a.txt; echo 3 > later.txt"}},
        {"type": "prompt", "config": {"evidence": ["diff", "repo"]}},
    ]
    judge = ScriptedJudge(answer)
    result = run(tmp_path, graders, "--require-pass", judge=judge)
    assert result.exit_code == 0, result.stderr
    record = result.records[0]
    assert record["judgeUsage"] == {"inputTokens": 20, "outputTokens": 10, "totalTokens": 30, "callCount": 1}
    assert [item["evidence"] for item in record["gradeResult"]["details"]][1:] == ["why"]
    assert "+1\n" in seen[-1]["workspace.diff"]
    # What a command of another grader did to the workspace is no evidence.
    assert {path: text for path, text in seen[-1].items() if path != "workspace.diff"} == {
        "repo-index.txt": "a.txt (2 bytes)\n",
        "repo/a.txt": "1\n",
    }
    assert judge.shutdowns == 1


@pytest.mark.parametrize(
    ("words", "env", "defaults", "config", "asked"),
    [
        ((), {}, {}, {}, ("gpt-5.6-terra", None)),
        ((), {}, {"judge_model": "spec", "judge_reasoning_effort": "low"}, {}, ("spec", "low")),
        (
            (),
            {"EVAL_JUDGE_REASONING_EFFORT": "medium"},
            {"judge_reasoning_effort": "low"},
            {},
            ("gpt-5.6-terra", "medium"),
        ),
        ((), {"EVAL_JUDGE_REASONING_EFFORT": ""}, {"judge_reasoning_effort": "low"}, {}, ("gpt-5.6-terra", "low")),
        (
            ("--judge-model", "option", "--judge-reasoning-effort", "high"),
            {"EVAL_JUDGE_REASONING_EFFORT": "medium"},
            {"judge_model": "spec"},
            {},
            ("option", "high"),
        ),
        (
            ("--judge-model", "option", "--judge-reasoning-effort", "high"),
            {},
            {},
            {"model": "own", "reasoning_effort": "max"},
            ("own", "max"),
        ),
    ],
)
def test_model_and_effort(
    words: tuple[str, ...],
    env: dict[str, str],
    defaults: dict[str, Any],
    config: dict[str, Any],
    asked: tuple[str, str | None],
    tmp_path: Path,
) -> None:
    judge = ScriptedJudge(grade(5))
    graders = [{"type": "prompt", "config": config}]
    result = run(tmp_path, graders, *words, judge=judge, env=env, spec={"defaults": defaults})
    assert result.exit_code == 0, result.stderr
    assert [(item.model, item.reasoning_effort) for item in judge.requests] == [asked]


def test_a_failed_member_of_a_panel(tmp_path: Path) -> None:
    """PN-6: the verdict stands, and the run exits 1."""
    replies: dict[str, Any] = {"a": grade(4), "b": JudgeError("down", kind="transport"), "c": grade(3)}
    judge = ScriptedJudge(lambda request: replies[request.model])
    result = run(tmp_path, [{"type": "panel", "config": {"models": ["a", "b", "c"]}}], judge=judge)
    summary = result.records[-1]
    assert (result.exit_code, summary["hadExecutionErrors"], summary["totals"]["passed"]) == (1, True, 1)
    (detail,) = result.records[0]["gradeResult"]["details"]
    assert detail["evidence"] == (
        "PASS via mean aggregation across 2 judge(s): a=0.75, c=0.50 → 0.63 (1 judge(s) failed: b)"
    )
    assert result.records[0]["judgeUsage"]["callCount"] == 3


def test_a_failed_judge_is_no_verdict(tmp_path: Path) -> None:
    judge = ScriptedJudge(["no", "call", "at all"])
    result = run(tmp_path, [{"type": "prompt"}], judge=judge)
    record, summary = result.records
    assert (result.exit_code, record["status"], record["gradeResult"]["status"]) == (1, "success", "error")
    assert (summary["hadExecutionErrors"], summary["passed"], summary["totals"]["passed"]) == (True, False, 0)
    assert record["judgeUsage"]["totalTokens"] == 45


class Hanging(ScriptedJudge):
    """Never answers; keeps whether it was told to stop."""

    stopped = False

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        self.requests.append(request)
        try:
            await anyio.sleep_forever()
        finally:
            self.stopped = True


def test_the_budget_of_grading_ends_a_judge(tmp_path: Path) -> None:
    judge = Hanging({})
    result = run(tmp_path, [{"type": "prompt"}], judge=judge, spec={"scoring": {"timeout": "1s"}})
    (detail,) = result.records[0]["gradeResult"]["details"]
    assert (result.exit_code, detail["evidence"], judge.stopped) == (1, "Grading timed out after 1s", True)
    directory = judge.requests[0].evidence_dir
    assert directory is not None
    assert not directory.exists()


@pytest.mark.parametrize("rubric", [None, []])
def test_without_a_rubric(rubric: list[str] | None, tmp_path: Path) -> None:
    judge = ScriptedJudge(grade(5, 2))
    result = run(tmp_path, [{"type": "prompt"}], "--runs", "3", judge=judge, stimulus={"rubric": rubric})
    assert result.exit_code == 0, result.stderr
    assert "no rubric; the default criteria are used [prompt-without-rubric]" in result.stderr
    assert result.stderr.count("WARNING vally.grader.prompt: no rubric; the default criteria are used\n") == 1
