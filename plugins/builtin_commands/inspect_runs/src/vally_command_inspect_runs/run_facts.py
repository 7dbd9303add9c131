"""What a list says about a run: read from its summary where there is one, else from its trials."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from vally import (
    RecordError,
    StoredRun,
    is_being_written,
    load_run_summary,
    parse_json,
    parse_timestamp,
    read_json,
    read_lines,
    read_trials,
    run_id,
    run_word,
    started_at,
)

if TYPE_CHECKING:
    from vally import RunSummary

FAILED_VERDICTS = frozenset({"fail", "error", "partial", "incomplete"})
_TAIL = 64 * 1024
_LONGEST_TAIL = 64 * 2**20


@dataclass(slots=True, kw_only=True)
class RunFacts:
    """One line of the list. `passed` and `graded` count trials with a verdict; `duration_ms` is None when unknown.

    `verdict` is `pass`, `fail`, `error`, `skipped`, `partial`, `running` or `incomplete`.
    """

    run: StoredRun
    id: str | None
    kind: str
    started: datetime | None
    evals: list[str] = field(default_factory=list)
    trials: int = 0
    passed: int = 0
    graded: int = 0
    verdict: str = "incomplete"
    duration_ms: int | None = None
    problems: list[str] = field(default_factory=list)
    backend: str | None = None
    """Where its first trial ran; None when the record does not say."""
    shown: str | None = None
    """How lists name it when its directory may be gone."""

    @property
    def pass_rate(self) -> float | None:
        """Share of passing trials among those with a verdict; None without any."""
        return self.passed / self.graded if self.graded else None


def facts_of(run: StoredRun) -> RunFacts | None:
    """The facts of a run; None for files that hold nothing of a run."""
    facts = RunFacts(run=run, id=run_id(run), kind=_kind(run), started=started_at(run))
    summaries: list[RunSummary] = []
    foreign = True
    for part in run.parts:
        summary = _last_summary(part.results)
        if summary is not None and summary.totals.trials:
            _count_summary(facts, summary)
            summaries.append(summary)
            foreign = False
        else:
            summary, is_foreign = _count_trials(facts, part.results)
            foreign = foreign and is_foreign
            if summary is not None:
                summaries.append(summary)
    if foreign and not run.is_experiment and not run.manifest():
        return None
    facts.evals = list(dict.fromkeys(facts.evals))
    facts.backend = next((name for part in run.parts if (name := _first_backend(part.results))), None)
    _conclude(facts, summaries)
    return facts


def _kind(run: StoredRun) -> str:
    named = run.manifest().get("kind")
    return named if isinstance(named, str) and named else "experiment" if run.is_experiment else "eval"


def backend_of(record: object) -> str | None:
    """Where the trial of a record ran; None when it does not say."""
    backend = record.get("backend") if isinstance(record, dict) else None
    return backend if isinstance(backend, str) and backend else None


def _first_backend(path: Path) -> str | None:
    with path.open("rb") as file:
        first = next(read_lines(file, []), None)
    return None if first is None else backend_of(first.record)


def _last_summary(path: Path) -> RunSummary | None:
    """The run summary in the last line of a file, found without reading what stands before it."""
    size, step = path.stat().st_size, _TAIL
    with path.open("rb") as file:
        while True:
            file.seek(max(0, size - step))
            tail = file.read(step).rstrip(b"\r\n\t ")
            cut = tail.rfind(b"\n")
            if cut >= 0 or step >= min(size, _LONGEST_TAIL):
                return _summary(tail[cut + 1 :])
            step *= 8


def _summary(line: bytes) -> RunSummary | None:
    if b'"run-summary"' not in line:
        return None
    try:
        return load_run_summary(parse_json(line))
    except (RecordError, ValueError):
        return None


def _count_summary(facts: RunFacts, summary: RunSummary) -> None:
    totals = summary.totals
    facts.evals += [item.name for item in summary.evals]
    facts.trials += totals.trials
    facts.passed += totals.passed
    facts.graded += totals.passed + totals.failed


def _count_trials(facts: RunFacts, path: Path) -> tuple[RunSummary | None, bool]:
    """Count the trials of a file one by one; also returns its summary and whether nothing in it is of a run."""
    trials = read_trials(path)
    facts.problems += [f"{problem.line}: {problem.message} [{problem.code}]" for problem in trials.problems]
    thresholds = trials.thresholds()
    facts.evals += dict.fromkeys(entry.eval_name for entry in trials.entries if entry.eval_name)
    for entry in trials.entries:
        verdict = entry.verdict(thresholds.get(entry.plan))
        facts.trials += 1
        facts.passed += verdict == "pass"
        facts.graded += verdict in ("pass", "fail")
    is_foreign = not trials.entries and trials.summary is None and bool(trials.others or trials.problems)
    return trials.summary, is_foreign


def _conclude(facts: RunFacts, summaries: list[RunSummary]) -> None:
    run = facts.run
    if is_being_written(run.path):
        facts.verdict = "running"
        return
    whole = read_json(run.path / "experiment-summary.json") if run.is_experiment else {}
    if not summaries:
        facts.verdict = "skipped" if whole and not facts.trials else facts.verdict
        return
    facts.duration_ms = _duration_ms(summaries)
    if any(summary.partial for summary in summaries) or whole.get("partial") is True:
        facts.verdict = "partial"
    elif any(summary.had_execution_errors for summary in summaries):
        facts.verdict = "error"
    elif all(run_word(summary) == "skipped" for summary in summaries):
        facts.verdict = "skipped"
    else:
        facts.verdict = "pass" if all(summary.passed for summary in summaries) else "fail"


def _duration_ms(summaries: list[RunSummary]) -> int | None:
    """That of the only part, else from the first start to the last end; None when no part tells both."""
    if len(summaries) == 1:
        return summaries[0].duration_ms
    spans = list(_spans(summaries))
    return round(1000 * (max(end for _, end in spans) - min(start for start, _ in spans))) if spans else None


def _spans(summaries: list[RunSummary]) -> Iterator[tuple[float, float]]:
    for summary in summaries:
        start, end = parse_timestamp(summary.started_at), parse_timestamp(summary.completed_at)
        if start is not None and end is not None:
            yield start.timestamp(), end.timestamp()
