"""Stored runs made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vally import GraderResult, TrialResult, dump_record, record_line
from vally.testing import event, trajectory, trial_result

NAME = "2026-01-02T03-04-05-678Z"
SUMMARY = {
    "type": "run-summary",
    "runId": "run-1",
    "status": "completed",
    "passed": False,
    "hadExecutionErrors": False,
    "partial": False,
    "stopReason": None,
    "startedAt": "2026-01-02T03:04:05.678Z",
    "completedAt": "2026-01-02T03:04:15.678Z",
    "durationMs": 10_000,
    "totals": {"trials": 3, "passed": 2, "failed": 1, "errors": 0, "skipped": 0, "flakyStimuli": 1, "totalTokens": 9},
    "evals": [
        {
            "name": "scripted",
            "evalFilePath": "eval.yaml",
            "variant": "main",
            "model": "default-model",
            "passed": False,
            "scoringApplied": False,
            "stimuliRun": 1,
            "stimuliTotal": 1,
            "durationMs": 10_000,
            "reason": "1 of 3 trials failed",
        }
    ],
}


class Make:
    """Results, grades and summaries of runs that never happened."""

    summary = SUMMARY

    @staticmethod
    def said(text: str, passed: bool = True) -> GraderResult:
        return GraderResult.verdict(passed, text, name="says it", grader_type="output-contains")

    def three_trials(self) -> list[TrialResult]:
        """Two passing trials and one that fails, in the order in which they ended."""
        made = [
            trial_result("greets", self.said("ok", index != 1), trial_index=index, total_trials=3) for index in range(3)
        ]
        return [made[2], made[0], made[1]]

    def busy_trial(self, **fields: Any) -> TrialResult:
        """A trial with an event of every kind that the timeline words."""
        facts = trajectory(
            event("user_message", content="Write app.json\nwith the port 8080"),
            event("reasoning", content="thinking"),
            event("turn_start", turn_id="0"),
            event("tool_call", tool_name="write", tool_call_id="1", arguments={"path": "app.json"}),
            event(
                "tool_result", tool_name="write", tool_call_id="1", success=True, result="File written", simulated=True
            ),
            event("tool_call", tool_name="bash", tool_call_id="2", arguments={"command": "false"}),
            event("tool_result", tool_name="bash", tool_call_id="2", success=False, result="boom", exit_code=3),
            event("skill_activation", name="writer", path="skills/writer/SKILL.md"),
            event("token_usage", input_tokens=100, output_tokens=20, model="m"),
            event("error", message="slow", code=429),
            event("system", event_type="compaction"),
            event("assistant_message", content="done"),
            event("turn_end", turn_id="0"),
            stimulus={"name": "writes", "prompt": "Write app.json"},
            end_reason="completed",
            output="done",
            diff="diff --git a/app.json b/app.json\n--- /dev/null\n+++ b/app.json\n@@ -0,0 +1 @@\n+{}\n",
            metadata={"executor": "mock", "startedAt": "2026-01-02T03:04:05.678Z"},
        )
        nested = [self.said("first part"), self.said("second part", passed=False)]
        panel = GraderResult.verdict(False, "half of it", score=0.5, name="panel", grader_type="panel", details=nested)
        return trial_result("writes", self.said("found"), panel, trajectory=facts, **fields)


class RunWriter:
    """Writes run directories below `vally-results`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __call__(
        self, *results: TrialResult, name: str = NAME, summary: dict[str, Any] | None = SUMMARY, tail: bytes = b""
    ) -> Path:
        directory = self._root / "vally-results" / name
        directory.mkdir(parents=True, exist_ok=True)
        lines = [record_line(dump_record(result)) for result in results]
        if summary is not None:
            lines.append(json.dumps(summary).encode() + b"\n")
        (directory / "results.jsonl").write_bytes(b"".join(lines) + tail)
        return directory
