"""Trial records of the generated data: what an agent did step by step, and what graders said."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from vally import timestamp
from vally_command_results.server.demo_stimuli import LARGE, DemoStimulus

Record = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Which trial it is and how it goes; `breaks` is an execution error."""

    run_id: str
    variant: str
    model: str
    index: int
    total: int
    start: datetime
    passes: bool
    breaks: bool


def trial_record(stimulus: DemoStimulus, situation: Situation, chance: random.Random) -> Record:
    """One line of results.jsonl."""
    session = _Session(stimulus, situation, chance)
    trajectory = session.trajectory()
    grade = None if situation.breaks else _grade(stimulus, situation, chance)
    names = (stimulus.eval_file, situation.variant, situation.model, stimulus.name, f"trial-{situation.index}")
    head = {
        "type": "trial-result",
        "runId": situation.run_id,
        "itemId": "::".join(names),
        "evalName": stimulus.eval_name,
        "evalFilePath": stimulus.eval_file,
        "variant": situation.variant,
        "model": situation.model,
        "stimulus": stimulus.name,
        "trialIndex": situation.index,
        "totalTrials": situation.total,
        "status": "error" if situation.breaks else "success",
        "durationMs": session.took_ms + 900,
        "phases": {"setupMs": 220, "agentMs": session.took_ms, "captureMs": 80, "gradeMs": 600},
        "startedAt": timestamp(situation.start),
        "workspacePath": None,
        "tags": {"area": [stimulus.area], "level": "hard" if stimulus.chance[0] < 0.5 else "easy"},
        "trajectory": trajectory,
        "gradeResult": grade,
    }
    if situation.breaks:
        message = "the model endpoint answered 529 (overloaded) three times"
        head["error"] = message
        head["errorInfo"] = {"message": message, "code": "executor", "retryable": True, "phase": "running"}
    return head


class _Session:
    """Makes the events of one trial, one after the other."""

    def __init__(self, stimulus: DemoStimulus, situation: Situation, chance: random.Random) -> None:
        self._stimulus = stimulus
        self._situation = situation
        self._chance = chance
        self._events: list[Record] = []
        self._clock = situation.start
        self._turn = 0
        self._calls = 0
        self._tokens = [0, 0]
        self._cost = 0.0

    @property
    def took_ms(self) -> int:
        """Time of the agent."""
        return round((self._clock - self._situation.start).total_seconds() * 1000)

    def trajectory(self) -> Record:
        """Let the agent work."""
        stimulus, situation = self._stimulus, self._situation
        self._add("user_message", {"content": stimulus.prompt})
        self._explore()
        if not situation.breaks:
            if situation.model == LARGE and self._chance.random() < 0.5:
                self._ask_helper()
            self._edit()
            self._check()
        output = self._end()
        return {
            "id": f"t-{situation.index}",
            "output": output,
            "workDir": "/workspace",
            "endReason": "error" if situation.breaks else "completed",
            "metadata": {
                "model": situation.model,
                "executor": "copilot-sdk",
                "skillsLoaded": ["config-writer"] if situation.variant == "skilled" else [],
                "startedAt": timestamp(situation.start),
            },
            "metrics": self._metrics(),
            "stimulus": {"name": stimulus.name, "prompt": stimulus.prompt},
            "events": self._events,
            "diff": "" if situation.breaks else self._diff(),
        }

    def _diff(self) -> str:
        if self._situation.passes:
            return self._stimulus.diff
        return (
            self._stimulus.diff.partition("\ndiff --git")[0].replace(self._stimulus.wanted, "unchanged").rstrip("\n")
            + "\n"
        )

    def _metrics(self) -> Record:
        names = [event["data"]["toolName"] for event in self._events if event["type"] == "tool_call"]
        read, written = self._tokens
        cost = {"provider": "demo", "unit": "usd", "amount": round(self._cost, 6)}
        return {
            "turnCount": self._turn,
            "toolCallCount": len(names),
            "toolCallBreakdown": {name: names.count(name) for name in dict.fromkeys(names)},
            "skillActivationCount": sum(event["type"] == "skill_activation" for event in self._events),
            "errorCount": sum(event["type"] == "error" for event in self._events),
            "wallTimeMs": self.took_ms,
            "tokenUsage": {
                "inputTokens": read,
                "outputTokens": written,
                "totalTokens": read + written,
                "cacheReadTokens": read // 3,
                "cacheWriteTokens": 0,
                "callCount": self._turn,
                "cost": cost,
            },
        }

    def _add(self, kind: str, data: Record, **further: Any) -> None:
        event = {"type": kind, "timestamp": timestamp(self._clock), "turn": self._turn, "data": data, **further}
        self._events.append(event)

    def _wait(self, low: float, high: float) -> None:
        self._clock += timedelta(milliseconds=round(1000 * self._chance.uniform(low, high)))

    def _begin_turn(self, thought: str) -> None:
        self._add("turn_start", {})
        self._wait(0.4, 1.8)
        self._add("reasoning", {"content": thought})

    def _end_turn(self) -> None:
        read = self._chance.randint(1800, 5200) + 900 * self._turn
        written = self._chance.randint(120, 700)
        price = 3.0 if self._situation.model == LARGE else 0.4
        self._tokens[0] += read
        self._tokens[1] += written
        self._cost += (read + 5 * written) * price / 1e6
        self._add("token_usage", {"model": self._situation.model, "inputTokens": read, "outputTokens": written})
        self._add("turn_end", {})
        self._turn += 1

    def _call(
        self, tool: str, arguments: Mapping[str, Any], result: str, *, success: bool = True, **further: Any
    ) -> None:
        self._together([(tool, arguments, result, success)], **further)

    def _together(self, calls: Sequence[tuple[str, Mapping[str, Any], str, bool]], **further: Any) -> None:
        """Calls that run beside each other; their results arrive in reverse order."""
        pending = []
        for tool, arguments, result, success in calls:
            self._calls += 1
            call_id = f"call-{self._calls}"
            self._add("tool_call", {"toolName": tool, "toolCallId": call_id, "arguments": dict(arguments)}, **further)
            pending.append({"toolName": tool, "toolCallId": call_id, "success": success, "result": result})
        for data in reversed(pending):
            self._wait(0.05, 1.2)
            self._add("tool_result", data, **further)

    def _explore(self) -> None:
        file = self._stimulus.file
        self._begin_turn(f"The task is about {file}. I look at it and at what lies beside it first.")
        listing = "\n".join(["README.md", file, "tests/", "docs/"])
        before = "\n".join(
            line[1:] for line in self._stimulus.diff.splitlines() if line[:1] in (" ", "-") and line[:3] != "---"
        )
        self._together([("view", {"path": file}, before, True), ("bash", {"command": "git ls-files"}, listing, True)])
        self._end_turn()
        if self._situation.variant == "skilled":
            self._add("skill_activation", {"name": "config-writer"})
        if self._situation.breaks:
            self._add("error", {"message": "529 overloaded_error: the service is busy, try again"})

    def _ask_helper(self) -> None:
        self._begin_turn("A second pair of eyes is cheap here.")
        sub: dict[str, Any] = {"agentId": "explorer-1", "agentName": "explorer"}
        self._call("grep", {"pattern": self._stimulus.wanted, "path": "."}, "no match", **sub)
        self._add("assistant_message", {"content": f"Only {self._stimulus.file} is concerned."}, **sub)
        self._end_turn()

    def _edit(self) -> None:
        self._begin_turn("The change is small. I write it and read it again.")
        if not self._situation.passes:
            missing = {"path": self._stimulus.file, "old": "no such text", "new": "…"}
            self._call("edit", missing, "error: the old text was not found in the file", success=False)
        new = "\n".join(line[1:] for line in self._stimulus.diff.splitlines() if line[:1] == "+" and line[:3] != "+++")
        self._call("edit", {"path": self._stimulus.file, "new": new}, f"{self._stimulus.file} was written")
        self._end_turn()

    def _check(self) -> None:
        for attempt in range(self._chance.randint(1, 3)):
            self._begin_turn("I run what the project runs." if attempt == 0 else "Once more, to be sure.")
            good = self._situation.passes or attempt > 0
            result = "ok" if good else "FAILED: 1 of 4 checks\n" + "\n".join(f"  check {n}: ok" for n in range(3))
            self._call("bash", {"command": self._stimulus.command}, result, success=good)
            self._end_turn()

    def _end(self) -> str:
        if self._situation.breaks:
            return ""
        text = self._stimulus.answer if self._situation.passes else "I changed the file as far as I could."
        self._wait(0.3, 1.0)
        self._add("assistant_message", {"content": text})
        return text


def _grade(stimulus: DemoStimulus, situation: Situation, chance: random.Random) -> Record:
    good = situation.passes
    marks = 1.0 if good else round(chance.uniform(0.1, 0.5), 2)
    evidence = f"'{stimulus.wanted}' {'found' if good else 'NOT found'} in the diff"
    details = [
        _grader("completed", "completed", True, 1.0, "ended: completed"),
        _grader("file-exists", f"file-exists {stimulus.file}", True, 1.0, f"'{stimulus.file}' exists"),
        _grader(
            "diff-contains",
            f"diff-contains {stimulus.wanted}",
            good,
            float(good),
            evidence,
        ),
        _rubric(good, marks),
    ]
    score = sum(item["score"] for item in details) / len(details)
    return {
        "name": "trajectory-grade",
        "kind": "code",
        "passed": good,
        "score": score if good else round(score * 0.7, 4),
        "evidence": f"{sum(item['passed'] for item in details)}/{len(details)} graders passed",
        "details": details,
        "metadata": {"requiredPassed": True},
    }


def _grader(kind: str, name: str, passed: bool, score: float, evidence: str) -> Record:
    label = "correct" if passed else "incorrect"
    return {
        "name": name,
        "graderType": kind,
        "kind": "code",
        "passed": passed,
        "score": score,
        "evidence": evidence,
        "label": label,
    }


def _rubric(good: bool, marks: float) -> Record:
    questions = {
        "does what was asked": (good, "The change matches the request." if good else "The main change is missing."),
        "leaves the rest alone": (True, "No other file was touched."),
        "explains itself": (good or marks > 0.3, "The closing sentence says what was done and where."),
    }
    details = [
        {**_grader("prompt", name, passed, float(passed), why), "kind": "llm"}
        for name, (passed, why) in questions.items()
    ]
    judge = {"metadata": {"judgeModel": "gpt-5", "rubric": "three questions"}, "kind": "llm", "details": details}
    why = "All three questions are answered with yes." if good else "The answer misses what mattered most."
    return {**_grader("prompt", "prompt rubric", good, marks, why), **judge}
