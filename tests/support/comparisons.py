"""Runs to compare, and a judge that sees how good their outputs say they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vally import JudgeError, JudgeRequest
from vally.testing import CliResult, ScriptedJudge, run_cli, trajectory

VERDICTS = {2: "much-better", 1: "slightly-better"}


def record(stimulus: str, index: int, quality: int, **fields: Any) -> dict[str, Any]:
    """A trial record whose output tells its quality; `passed` and `tokens` may be among the fields."""
    passed, tokens = fields.pop("passed", None), fields.pop("tokens", 100)
    grade = {"name": "aggregate", "kind": "code", "passed": passed, "score": float(bool(passed)), "evidence": "e"}
    metrics = {"tokenUsage": {"inputTokens": tokens, "outputTokens": 0, "totalTokens": tokens}, "turnCount": 1}
    work = trajectory(output=f"quality={quality}").model_dump(by_alias=True, mode="json", exclude_none=True)
    work |= {"stimulus": {"name": stimulus, "prompt": "Do it."}, "metrics": {**work["metrics"], **metrics}}
    if "end" in fields:
        work["endReason"] = fields.pop("end")
    return {
        "type": "trial-result",
        "runId": "r",
        "itemId": f"{stimulus}-{fields.get('model', 'm')}-{index}-{fields.get('evalFilePath', 'e')}",
        "evalName": "e",
        "evalFilePath": "e.yaml",
        "variant": "main",
        "model": "m",
        "stimulus": stimulus,
        "trialIndex": index,
        "totalTrials": 3,
        "status": "success",
        "trajectory": work,
        "gradeResult": None if passed is None else grade,
        **fields,
    }


def answer(verdict: str, criteria: int) -> dict[str, Any]:
    """What a judge submits."""
    items = [{"criterion": "c", "verdict": verdict, "reasoning": "r"}] * criteria
    return {"criteria": items, "overall_verdict": verdict, "overall_reasoning": f"because {verdict}"}


def by_quality(request: JudgeRequest) -> Any:
    """The honest judge: what says it is better is better."""
    qualities = [int(text) for text in re.findall(r"quality=(\d+)", request.user_message)]
    difference = qualities[0] - qualities[-1]
    if difference == 0:
        return answer("equal", criteria_of(request))
    word = VERDICTS[min(2, abs(difference))]
    return answer(f"{'A' if difference > 0 else 'B'}-{word}", criteria_of(request))


def first_wins(request: JudgeRequest) -> Any:
    """The judge that always prefers what it reads first."""
    return answer("A-much-better", criteria_of(request))


def fails_on_nines(request: JudgeRequest) -> Any:
    """A judge that cannot answer about some pairs."""
    if "quality=9" in request.user_message:
        raise JudgeError("the endpoint is away", kind="transport")
    return by_quality(request)


def criteria_of(request: JudgeRequest) -> int:
    """How many criteria the message numbers."""
    return len(re.findall(r"^\d+\. ", request.user_message, re.MULTILINE))


@dataclass(frozen=True)
class Comparisons:
    """Makes runs below `root` and compares them."""

    root: Path

    def record(self, stimulus: str, index: int, quality: int, **fields: Any) -> dict[str, Any]:
        """One trial record."""
        return record(stimulus, index, quality, **fields)

    def write(self, path: str, records: Sequence[Mapping[str, Any]]) -> Path:
        """A file of records."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(json.dumps(item) + "\n" for item in records))
        return target

    def side(self, path: str, qualities: Mapping[str, Sequence[int]], **fields: Any) -> Path:
        """A file with one trial for each quality of each stimulus."""
        trials = [(name, index, each) for name, values in qualities.items() for index, each in enumerate(values)]
        return self.write(path, [record(*trial, **fields) for trial in trials])

    def compare(
        self,
        *words: str,
        judge: Callable[[JudgeRequest], Any] = by_quality,
        plugins: Sequence[object] = (),
        **options: Any,
    ) -> CliResult:
        """Run `vally compare` with a scripted judge."""
        return run_cli(["compare", *words], cwd=self.root, plugins=[ScriptedJudge(judge).record(), *plugins], **options)

    def compared(self, *words: str, **options: Any) -> dict[str, Any]:
        """The one record of comparing a.jsonl with b.jsonl."""
        result = self.compare("--baseline", "a.jsonl", "--treatment", "b.jsonl", "--output", "-", *words, **options)
        (line,) = result.stdout.splitlines()
        return dict(json.loads(line))

    first_wins = staticmethod(first_wins)
    fails_on_nines = staticmethod(fails_on_nines)
