"""Results for `vally serve --demo`: run directories as a run writes them, the same at every call."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from vally import mean_interval, timestamp
from vally_command_results.server.demo_stimuli import LARGE, MODELS, STIMULI, DemoStimulus
from vally_command_results.server.demo_trials import Situation, trial_record

RUNS = 9
TRIALS = 3
THRESHOLDS = {"config-editing": 0.8, "bug-fixing": 0.6, "docs-writing": 0.75}
_FIRST = datetime(2026, 6, 1, 1, 0, tzinfo=UTC)
_EXPERIMENT = "skill-check"
_EVERY = timedelta(days=3, hours=11)
Record = dict[str, Any]


def write_demo(root: Path) -> None:
    """Write nightly runs of four weeks, one that was interrupted, one that still runs, and an experiment."""
    for number in range(RUNS):
        _nightly(root, number)
    _experiment(root / "experiments" / _EXPERIMENT)


def _nightly(root: Path, number: int) -> None:
    start = _FIRST + number * _EVERY
    chance = random.Random(f"nightly {number}")
    run_id = f"demo-{number:04d}"
    # One night a change makes things worse, and the agents get better over the weeks.
    gain = -0.25 if number == 5 else 0.02 * number
    records = list(_trials(run_id, start, chance, gain, MODELS))
    partial, running = number == 3, number == RUNS - 1
    if partial:
        records = [*records[:26], *(_skipped(record) for record in records[26:])]
    if running:
        records = records[:17]
    directory = root / "nightly" / f"{start:%Y-%m-%dT%H-%M-%S}-000Z"
    summary = [] if running else [_summary(run_id, start, records, partial=partial)]
    _write(directory / "results.jsonl", [*records, *summary])
    options = {"workers": 4, "runs": TRIALS, "seed": 7, "model": list(MODELS)}
    manifest = {
        "runId": run_id,
        "startedAt": timestamp(start),
        "toolVersion": "0.1.0",
        "options": options,
        "labels": {"branch": "main"},
    }
    (directory / "run-manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def _trials(
    run_id: str,
    start: datetime,
    chance: random.Random,
    gain: float,
    models: Sequence[str],
    variant: str = "main",
    trials: int = TRIALS,
) -> Iterable[Record]:
    moment = start
    for stimulus in STIMULI:
        for model in models:
            for index in range(trials):
                moment += timedelta(seconds=chance.uniform(4, 19))
                likely = stimulus.chance[MODELS.index(model)] + gain
                situation = Situation(
                    run_id=run_id,
                    variant=variant,
                    model=model,
                    index=index,
                    total=trials,
                    start=moment,
                    passes=chance.random() < likely,
                    breaks=chance.random() < 0.02,
                )
                yield trial_record(stimulus, situation, chance)


def _skipped(record: Mapping[str, Any]) -> Record:
    kept = {key: value for key, value in record.items() if key not in ("error", "errorInfo", "phases", "judgeUsage")}
    return {
        **kept,
        "status": "skipped",
        "durationMs": 0,
        "trajectory": None,
        "gradeResult": None,
        "skipReason": "budget",
    }


def _write(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_text("".join(lines), encoding="utf-8")


def _summary(run_id: str, start: datetime, records: Sequence[Record], *, partial: bool = False) -> Record:
    took = sum(record["durationMs"] for record in records) // 4
    evals = [
        _eval_summary(name, model, [item for item in records if item["evalName"] == name and item["model"] == model])
        for name in THRESHOLDS
        for model in dict.fromkeys(record["model"] for record in records)
    ]
    return {
        "type": "run-summary",
        "runId": run_id,
        "status": "completed",
        "passed": not partial and all(item["passed"] for item in evals),
        "hadExecutionErrors": any(record["status"] == "error" for record in records),
        "partial": partial,
        "stopReason": "budget-cost" if partial else None,
        "startedAt": timestamp(start),
        "completedAt": timestamp(start + timedelta(milliseconds=took)),
        "durationMs": took,
        "evals": evals,
    }


def _eval_summary(name: str, model: str, records: Sequence[Record]) -> Record:
    by_stimulus: dict[str, list[float]] = {}
    for record in records:
        scores = by_stimulus.setdefault(record["stimulus"], [])
        if record["gradeResult"] is not None:
            scores.append(record["gradeResult"]["score"])
    means = [sum(scores) / len(scores) for scores in by_stimulus.values() if scores]
    score = sum(means) / len(means) if means else None
    errors = [record["error"] for record in records if record["status"] == "error"]
    reached = score is not None and score >= THRESHOLDS[name] - 1e-9
    return {
        "name": name,
        "evalFilePath": f"evals/{name}/eval.yaml",
        "variant": records[0]["variant"],
        "model": model,
        "passed": reached and not errors and len(means) == len(by_stimulus),
        "scoringApplied": True,
        **({} if score is None else {"overallScore": score}),
        "threshold": THRESHOLDS[name],
        "stimuliRun": len(means),
        "stimuliTotal": len(by_stimulus),
        "durationMs": sum(record["durationMs"] for record in records),
        **({"error": errors[0]} if errors else {}),
    }


def _experiment(directory: Path) -> None:
    start = _FIRST + timedelta(days=25, hours=9)
    variants = {"baseline": -0.05, "skilled": 0.25, "short-prompt": -0.15}
    head = {
        "name": _EXPERIMENT,
        "runId": "demo-experiment",
        "variantNames": list(variants),
        "baseline": "baseline",
        "vallyVersion": "0.1.0",
    }
    results: dict[str, list[Record]] = {}
    for variant, gain in variants.items():
        chance = random.Random(f"experiment {variant}")
        records = list(_trials("demo-experiment", start, chance, gain, [LARGE], variant))
        block = {"name": _EXPERIMENT, "runId": "demo-experiment", "variant": variant, "baseline": "baseline"}
        results[variant] = [
            {**record, "experiment": {**block, "evalFile": record["evalFilePath"]}} for record in records
        ]
        summary = _summary("demo-experiment", start, records)
        _write(directory / variant / "results.jsonl", [*results[variant], summary])
    manifest = {"type": "experiment-manifest", "version": 1, "experiment": head}
    (directory / "experiment-manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    judged = [
        _comparison(name, treatment, results["baseline"], results[treatment])
        for treatment in ("skilled", "short-prompt")
        for name in ("config-editing", "bug-fixing")
    ]
    _write(directory / "comparisons.jsonl", judged)


def _comparison(eval_name: str, treatment: str, before: Sequence[Record], after: Sequence[Record]) -> Record:
    stimuli: list[Record] = []
    for stimulus in (item for item in STIMULI if item.eval_name == eval_name):
        pairs = zip(_of(before, stimulus), _of(after, stimulus), strict=True)
        trials = [_judged(index, *pair) for index, pair in enumerate(pairs)]
        mean = sum(trial["score"] for trial in trials) / len(trials)
        stimuli.append({"stimulusName": stimulus.name, "meanScore": mean, "trials": trials})
    every = [trial for item in stimuli for trial in item["trials"]]
    scores = mean_interval([trial["score"] for trial in every])
    winners = [trial["winner"] for trial in every]
    return {
        "type": "comparison",
        "experimentName": _EXPERIMENT,
        "baseline": "baseline",
        "treatment": treatment,
        "evalFile": f"evals/{eval_name}/eval.yaml",
        "model": LARGE,
        "summary": {
            "trialCount": len(every),
            "erroredCount": 0,
            "meanScore": scores.mean,
            "ciLow": scores.low,
            "ciHigh": scores.high,
            "wins": winners.count("treatment"),
            "ties": winners.count("tie"),
            "losses": winners.count("baseline"),
            "winRate": winners.count("treatment") / len(winners),
        },
        "stimuli": stimuli,
        "unmatchedBaseline": [],
        "unmatchedTreatment": [],
    }


def _of(records: Sequence[Record], stimulus: DemoStimulus) -> list[Record]:
    return [record for record in records if record["stimulus"] == stimulus.name]


def _judged(index: int, before: Record, after: Record) -> Record:
    passed = [bool((record["gradeResult"] or {}).get("passed")) for record in (before, after)]
    word, score = {
        (True, False): ("much-worse", -1.0),
        (False, True): ("much-better", 1.0),
        (True, True): ("equal", 0.0),
        (False, False): ("slightly-better", 0.4) if index % 2 else ("equal", 0.0),
    }[passed[0], passed[1]]
    winner = "tie" if score == 0 else "treatment" if score > 0 else "baseline"
    evidence = {
        "much-worse": "The baseline does what was asked; the treatment leaves the main change out.",
        "much-better": "Only the treatment does what was asked, and it says so in one sentence.",
        "equal": "Both answers change the same lines; neither explains more than the other.",
        "slightly-better": "Neither is complete, but the treatment finds the right file.",
    }[word]
    return {
        "trialIndex": index,
        "winner": winner,
        "magnitude": word,
        "score": score,
        "evidence": evidence,
        "baselinePassed": passed[0],
        "treatmentPassed": passed[1],
    }
