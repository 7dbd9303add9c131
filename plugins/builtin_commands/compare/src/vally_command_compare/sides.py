"""One side of a comparison: the trials of a results file, without their trajectories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vally import (
    GraderResult,
    ReadProblem,
    RecordError,
    ResultsIndex,
    Trajectory,
    VallyError,
    index_results,
    load_trajectory,
    load_trial_result,
    parse_json,
    resolve_grade_pass,
    stimulus_name,
)

RESULTS_NAME = "results.jsonl"
METRICS = ("totalTokens", "turnCount", "toolCallCount", "wallTimeMs", "errorCount")
CUT_SHORT = frozenset({"agent_timeout", "iteration_cap", "budget", "cancelled"})
"""Ends of a trajectory that a limit chose, not the agent: such work says little about which side is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One trial of a side; `place` is where its line lies: offset and length in bytes.

    `usable` tells that it succeeded and has a trajectory, `cut_short` that a limit ended it. `passed` is its verdict,
    None without one; `metrics` are those of `METRICS` that are known.
    """

    stimulus: str
    trial_index: int
    model: str
    eval_name: str
    eval_file: str
    place: tuple[int, int]
    usable: bool
    cut_short: str | None = None
    passed: bool | None = None
    score: float | None = None
    metrics: Mapping[str, float]

    @property
    def label(self) -> str:
        """How lists of leftovers name it."""
        return f"{self.stimulus} (trial {self.trial_index})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The trials of one file in its order. `name` is what records call it; `problems` are lines left out."""

    name: str
    path: Path
    attempts: tuple[Attempt, ...]
    problems: tuple[ReadProblem, ...] = ()

    def trajectory(self, attempt: Attempt) -> Trajectory:
        """Read the trajectory of a usable trial."""
        offset, length = attempt.place
        with self.path.open("rb") as file:
            file.seek(offset)
            record = parse_json(file.read(length))
        return load_trajectory(record["trajectory"], "/trajectory")

    def only(self, *, eval_file: str, model: str | None) -> Side:
        """The trials of one eval file and, unless None, one model."""
        kept = (item for item in self.attempts if item.eval_file == eval_file and model in (None, item.model))
        return replace(self, attempts=tuple(kept), problems=())


def results_path(path: Path, option: str) -> Path:
    """The results file that a path stands for; raises `VallyError` when there is none."""
    if path.is_dir():
        path = path / RESULTS_NAME
        if not path.is_file():
            raise VallyError(f"'{path.parent}' holds no {RESULTS_NAME}", where=option, hints=[_instead(path.parent)])
    if not path.is_file():
        raise VallyError(f"'{path}' does not exist", where=option)
    return path


def _instead(directory: Path) -> str:
    variants = sorted(item.name for item in directory.iterdir() if (item / RESULTS_NAME).is_file())
    if variants:
        return f"name a directory in it: {', '.join(variants)}"
    return "name a run directory, a variant directory, or a file of trial records"


def read_side(path: Path, name: str, option: str) -> Side:
    """Read the trials of a run directory, a variant directory or a file; raises `VallyError`."""
    file = results_path(path, option)
    try:
        index = index_results(file)
        attempts, unreadable = _attempts(index)
    except OSError as error:
        raise VallyError(f"cannot read '{file}': {error.strerror or error}", where=option) from error
    problems = sorted([*index.problems, *unreadable], key=lambda problem: problem.line)
    return Side(name=name, path=file, attempts=tuple(attempts), problems=tuple(problems))


def _attempts(index: ResultsIndex) -> tuple[list[Attempt], list[ReadProblem]]:
    thresholds = _thresholds(index.summary)
    attempts: list[Attempt] = []
    problems: list[ReadProblem] = []
    running: dict[tuple[str, str, str], int] = {}
    for entry, record in zip(index.entries, index.records(), strict=True):
        try:
            attempts.append(_attempt(record, (entry.offset, entry.length), thresholds, running))
        except RecordError as error:
            problems.append(ReadProblem(code="bad-record", line=entry.line, message=str(error)))
    return _in_plan_order(attempts, index.summary), problems


def _in_plan_order(attempts: Iterable[Attempt], summary: Mapping[str, Any] | None) -> list[Attempt]:
    """The attempts as they were planned: lines come as trials ended, the summary names stimuli in their order.

    What the summary does not name, or all without one, stays in the order of its first line.
    """
    ranks: dict[tuple[str, str, str], int] = {}
    for item in _evals(summary):
        place = str(item.get("evalFilePath", "")), str(item.get("model") or "")
        for name in _stimulus_names(item):
            ranks.setdefault((*place, name), len(ranks))
    ranked = [
        (ranks.setdefault((item.eval_file, item.model, item.stimulus), len(ranks)), item.trial_index, item)
        for item in attempts
    ]
    return [item for _, _, item in sorted(ranked, key=lambda entry: entry[:2])]


def _stimulus_names(evaluation: Mapping[str, Any]) -> Iterator[str]:
    stats = evaluation.get("stats")
    stimuli = stats.get("stimuli") if isinstance(stats, Mapping) else None
    for item in stimuli if isinstance(stimuli, list) else ():
        if isinstance(item, Mapping):
            yield str(item.get("name", ""))


def _attempt(
    record: Mapping[str, Any], place: tuple[int, int], thresholds: Mapping[Any, float], running: dict[Any, int]
) -> Attempt:
    trajectory = record.get("trajectory")
    whole = load_trial_result({"type": "trial-result", **record})
    key = (whole.eval_file_path, whole.variant, whole.model or "", stimulus_name(record))
    number = record.get("trialIndex")
    if not isinstance(number, int):
        number = running.get(key, 0)
    running[key] = number + 1
    end = whole.trajectory.end_reason if whole.trajectory is not None else None
    grade = whole.grade_result
    return Attempt(
        stimulus=key[3],
        trial_index=number,
        model=key[2],
        eval_name=whole.eval_name,
        eval_file=whole.eval_file_path,
        place=place,
        usable=isinstance(trajectory, Mapping) and whole.status == "success",
        cut_short=end if end in CUT_SHORT else None,
        passed=_passed(grade, thresholds.get(key[:3])),
        score=None if grade is None or grade.status == "error" else grade.score,
        metrics=_metrics(whole.trajectory),
    )


def _passed(grade: GraderResult | None, threshold: float | None) -> bool | None:
    return None if grade is None else resolve_grade_pass(grade, threshold)


def _thresholds(summary: Mapping[str, Any] | None) -> dict[tuple[str, str, str], float]:
    """Thresholds of a run's summary by eval file, variant and model."""
    return {
        (str(item.get("evalFilePath", "")), str(item.get("variant", "")), str(item.get("model") or "")): item[
            "threshold"
        ]
        for item in _evals(summary)
        if isinstance(item.get("threshold"), (int, float))
    }


def _evals(summary: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    evals = (summary or {}).get("evals")
    return (item for item in evals if isinstance(item, Mapping)) if isinstance(evals, list) else iter(())


def _metrics(trajectory: Trajectory | None) -> dict[str, float]:
    if trajectory is None or trajectory.metrics is None:
        return {}
    metrics = trajectory.metrics
    values = (
        None if metrics.token_usage is None else metrics.token_usage.total_tokens,
        metrics.turn_count,
        metrics.tool_call_count,
        metrics.wall_time_ms,
        metrics.error_count,
    )
    return {name: value for name, value in zip(METRICS, values, strict=True) if value is not None}
