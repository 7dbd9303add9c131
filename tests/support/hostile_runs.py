"""Results of an agent that attacks whoever reads them, and results of ordinary size."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

SCRIPT = "<script>window.attacked=1</script>"
IMAGE = "<img src=x onerror=alert(1)>"
BIDI = "safe\u202egnp.exe\u2066\u2069"
TERMINAL = "\x1b[2J\x1b]0;owned\x07\x1b[31mred\x9b31m\x00\x08"
BREAKOUT = "\"'></title></textarea></svg><svg onload=alert(1)>"
TEMPLATE = "{{7*7}}${7*7}{% raw %}"
COMMAS = "a, b & c=d; e/f?g#h%20"
LONG_NAME = "long " * 400
LONG_LINE = "x" * 5_000_000
STIMULI = (
    IMAGE, SCRIPT, BIDI, TERMINAL, BREAKOUT, TEMPLATE, COMMAS, LONG_NAME, "line\nbreak\u2028x", "javascript:alert(1)",
)  # fmt: skip
EVERYTHING = f"{IMAGE}\n{SCRIPT}\n{BIDI}\n{TERMINAL}\n{BREAKOUT}\n{TEMPLATE}\n[link](javascript:alert(1))\n"
DIFF = (
    f"diff --git a/{IMAGE} b/{IMAGE}\nnew file mode 100644\n--- /dev/null\n+++ b/{IMAGE}\n@@ -0,0 +1,3 @@ {SCRIPT}\n"
    f"+{SCRIPT}{BIDI}{TERMINAL}\n+{LONG_LINE[:20_000]}\n+{BREAKOUT}\n"
    "diff --git a/page.html b/page.html\nindex 1..2 100644\n--- a/page.html\n+++ b/page.html\n@@ -1,2 +1,2 @@\n"
    f"-{SCRIPT}\n+{IMAGE}{BREAKOUT}\n </script>\n"
    "diff --git a/module.py b/module.py\nindex 1..2 100644\n--- a/module.py\n+++ b/module.py\n@@ -1 +1,2 @@\n"
    f"-x = '{SCRIPT}'\n+x = '{IMAGE}'  # {BREAKOUT}\n+y = \"{BIDI}\"\n"
)


def grader(name: str, *, passed: bool, **fields: Any) -> dict[str, Any]:
    """A grader's result."""
    head = {"name": name, "graderType": name, "kind": "llm", "passed": passed, "score": float(passed)}
    return {**head, "evidence": f"about {name}", **fields}


def events(texts: Iterable[str]) -> list[dict[str, Any]]:
    """An event of every kind, with each text wherever it can stand."""
    found: list[dict[str, Any]] = []
    for place, text in enumerate(texts):
        call = {"toolName": text[:3000], "toolCallId": f"c{place}"}
        for kind, data in (
            ("user_message", {"content": text}),
            ("reasoning", {"content": text}),
            ("tool_call", {**call, "arguments": {text[:3000]: text}}),
            ("tool_result", {**call, "success": False, "result": text}),
            ("tool_call", {**call, "toolCallId": f"open{place}", "arguments": text}),
            ("skill_activation", {"name": text[:3000], "path": text}),
            ("token_usage", {"inputTokens": 5, "outputTokens": 1, "model": text[:3000]}),
            ("error", {"message": text}),
            ("system_event", {"eventType": text[:3000], "payload": {"text": text}}),
            (text[:3000], {"anything": text}),
            ("assistant_message", {"content": text}),
        ):
            moment = f"2026-07-24T01:00:{place:02d}.{len(found) % 10}00Z"
            found.append({"type": kind, "timestamp": moment, "turn": place, "agentId": text[:3000], "data": data})
    return found


def hostile_trial(stimulus: str, index: int, **fields: Any) -> dict[str, Any]:
    """A trial with hostile text in every field that holds text."""
    nested = [grader(text, passed=False, evidence=EVERYTHING, metadata={text: text}) for text in STIMULI[:4]]
    details = [
        grader(EVERYTHING, passed=index % 2 == 0, evidence=LONG_LINE[:70_000], details=nested),
        grader(stimulus, passed=False, evidence=EVERYTHING),
    ]
    model, evaluation = f"model {IMAGE}", f"eval {BREAKOUT}, {COMMAS}"
    return {
        "type": "trial-result",
        "runId": f"run {SCRIPT}",
        "itemId": f"{stimulus[:300]}::{index}",
        "evalName": evaluation,
        "evalFilePath": f"evals/{IMAGE}.yaml",
        "variant": f"variant {BIDI}",
        "model": model,
        "stimulus": stimulus,
        "trialIndex": index,
        "totalTrials": 2,
        "status": "success",
        "durationMs": 1000 + index,
        "startedAt": "2026-07-24T01:00:00.000Z",
        "workspacePath": f"/tmp/{SCRIPT}",
        "warnings": [EVERYTHING],
        "tags": {IMAGE: [SCRIPT, BIDI], "x": COMMAS},
        "trajectory": {
            "output": EVERYTHING + (LONG_LINE if stimulus == IMAGE else ""),
            "endReason": IMAGE,
            "metadata": {"executor": SCRIPT, "skillsLoaded": [IMAGE, BIDI]},
            "metrics": {"turnCount": 1, "toolCallCount": 2, "errorCount": 1, "wallTimeMs": 5},
            "stimulus": {"name": stimulus, "prompt": EVERYTHING},
            "events": events([*STIMULI, EVERYTHING + LONG_LINE[:10_000]]),
            "diff": DIFF,
            "turnDiffs": [{"turn": 0, "diff": DIFF}],
        },
        "gradeResult": {
            "name": "trajectory-grade",
            "kind": "code",
            "passed": index % 2 == 0,
            "score": 1.0 if index % 2 == 0 else 0.5,
            "evidence": EVERYTHING,
            "details": details,
        },
        **fields,
    }


def write_results(directory: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """A run directory."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "results.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(record)}\n" for record in records)


def write_hostile_run(directory: Path) -> None:
    """A run whose every text attacks, with a trial that errored and a summary."""
    trials = [hostile_trial(stimulus, index) for stimulus in STIMULI for index in range(2)]
    broken = hostile_trial(IMAGE, 2, status="error", error=EVERYTHING, trajectory=None, gradeResult=None)
    broken["errorInfo"] = {"message": SCRIPT, "code": IMAGE, "phase": BREAKOUT, "retryable": False}
    evaluation = {
        "name": trials[0]["evalName"],
        "evalFilePath": trials[0]["evalFilePath"],
        "variant": trials[0]["variant"],
        "model": trials[0]["model"],
        "passed": False,
        "threshold": 0.9,
        "scoringApplied": True,
        "overallScore": 0.5,
        "error": EVERYTHING,
    }
    summary = {
        "type": "run-summary",
        "runId": trials[0]["runId"],
        "status": "completed",
        "passed": False,
        "hadExecutionErrors": True,
        "partial": True,
        "stopReason": IMAGE,
        "startedAt": "2026-07-24T01:00:00.000Z",
        "completedAt": "2026-07-24T01:10:00.000Z",
        "durationMs": 600_000,
        "evals": [evaluation],
    }
    write_results(directory, [*trials, broken, summary])
    comparison = {
        "type": "comparison",
        "experimentName": IMAGE,
        "baseline": SCRIPT,
        "treatment": BREAKOUT,
        "evalFile": BIDI,
        "model": TERMINAL,
        "summary": {"trialCount": 1, "meanScore": 0.4, "ciLow": -9, "ciHigh": 9, "winRate": 1, "wins": IMAGE},
        "stimuli": [
            {"stimulusName": IMAGE, "meanScore": SCRIPT, "trials": [{"winner": SCRIPT, "evidence": EVERYTHING}, "no"]}
        ],
        "unmatchedBaseline": [SCRIPT],
    }
    (directory / "compared.jsonl").write_text(json.dumps(comparison) + "\n", encoding="utf-8")


def ordinary_trial(run: int, number: int) -> dict[str, Any]:
    """A trial of a run of ordinary size."""
    stimulus, model, index = f"stimulus-{number // 6}", f"model-{number % 2}", number // 2 % 3
    passed = (number * 7 + run) % 5 > 0
    call = {"toolName": "bash", "toolCallId": "c"}
    return {
        "type": "trial-result",
        "runId": f"run-{run}",
        "itemId": f"e.yaml::main::{model}::{stimulus}::trial-{index}",
        "evalName": f"eval-{number % 3}",
        "evalFilePath": "e.yaml",
        "variant": "main",
        "model": model,
        "stimulus": stimulus,
        "trialIndex": index,
        "totalTrials": 3,
        "status": "success",
        "durationMs": 5000 + 37 * number,
        "startedAt": f"2026-07-{1 + run:02d}T01:00:00.000Z",
        "tags": {"area": f"area-{number % 4}"},
        "trajectory": {
            "output": "done",
            "metrics": {"turnCount": 2, "toolCallCount": 1, "errorCount": 0, "wallTimeMs": 4000},
            "stimulus": {"name": stimulus, "prompt": "Do it."},
            "events": [
                {"type": "tool_call", "timestamp": "2026-07-01T01:00:00.100Z", "turn": 0, "data": call},
                {"type": "tool_result", "timestamp": "2026-07-01T01:00:00.400Z", "turn": 0, "data": call},
            ],
        },
        "gradeResult": {
            "name": "trajectory-grade",
            "kind": "code",
            "passed": passed,
            "score": float(passed),
            "evidence": "graded",
            "details": [grader(f"grader-{place}", passed=passed) for place in range(3)],
        },
    }


def write_ordinary_runs(root: Path, runs: int, trials: int) -> None:
    """Runs of some trials each, without summaries."""
    for run in range(runs):
        write_results(root / f"run-{run:03d}", (ordinary_trial(run, number) for number in range(trials)))
