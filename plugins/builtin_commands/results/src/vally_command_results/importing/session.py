"""An import of whole directories."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import func, insert, select

from vally import existing_directory, timestamp
from vally_command_results.importing.finding import FoundComparisons, FoundRun, find_sources
from vally_command_results.importing.importer import NO_RECORDS, ImportedRun, ImportOptions, import_run
from vally_command_results.importing.judged import import_comparisons
from vally_command_results.store import schema
from vally_command_results.store.opening import Store


@dataclass(slots=True)
class ImportSummary:
    """The runs of an import in order; `warnings` are lines for people, `comparisons` counts new ones."""

    runs: list[ImportedRun] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    comparisons: int = 0

    def count(self, result: str) -> int:
        """How many runs ended so."""
        return sum(run.result == result for run in self.runs)

    @property
    def outcomes(self) -> int:
        """Outcomes that were written."""
        return sum(sum(run.counts.values()) for run in self.runs)


def import_directories(
    store: Store,
    directories: Iterable[tuple[Path, str]],
    options: ImportOptions,
    *,
    on_run: Callable[[ImportedRun], None] = lambda _: None,
) -> ImportSummary:
    """Import everything below some directories, given with their names; a run that fails does not stop the others."""
    started, summary = timestamp(), ImportSummary()
    named = list(directories)
    for found in _sources(named):
        if isinstance(found, FoundComparisons):
            _comparisons(store, found, options, summary)
            continue
        run = import_run(store, found, options)
        if run.result == "skipped" and run.message == NO_RECORDS:
            continue
        summary.runs.append(run)
        summary.warnings += run.warnings
        on_run(run)
    if not options.dry_run and any(run.result != "unchanged" for run in summary.runs):
        _note(store, ", ".join(name for _, name in named), started, summary)
    return summary


def _sources(directories: Iterable[tuple[Path, str]]) -> Iterator[FoundRun | FoundComparisons]:
    seen = set()
    for root, name in directories:
        for found in find_sources(root, name):
            real = found.path.resolve()
            if real not in seen:
                seen.add(real)
                yield found


def _comparisons(store: Store, found: FoundComparisons, options: ImportOptions, summary: ImportSummary) -> None:
    if options.dry_run:
        return
    try:
        number, warnings = import_comparisons(store, found)
    except OSError as error:
        summary.warnings.append(f"{found.source}: cannot be read: {error.strerror or error}")
        return
    summary.comparisons += number
    summary.warnings += warnings


def _note(store: Store, source: str, started: str, summary: ImportSummary) -> None:
    counts = Counter(run.result for run in summary.runs)
    messages = [f"{run.source}: {run.message}" for run in summary.runs if run.message]
    row = {
        "started_at": started,
        "finished_at": timestamp(),
        "source": source,
        **{name: counts[name] for name in ("imported", "updated", "unchanged", "failed")},
        "messages": [*messages, *summary.warnings],
    }
    with store.writing("imports") as connection:
        connection.execute(insert(schema.imports), [row])


def require_directory(base: Path, word: str) -> tuple[Path, str]:
    """A directory that a command names; raises `VallyError` when it is none."""
    existing_directory(base, word, "DIRECTORY")
    return base / word, Path(word).as_posix()


def holds_runs(directories: Iterable[tuple[Path, str]]) -> bool:
    """Whether there is anything to import."""
    return next(_sources(directories), None) is not None


def outcomes_held(store: Store) -> int:
    """How many outcomes are in a store, those of earlier imports with them."""
    with store.reading() as connection:
        return int(connection.scalar(select(func.count()).select_from(schema.outcomes)) or 0)


def totals_document(store: Store, summary: ImportSummary) -> str:
    """What `--output json` prints."""
    return json.dumps(
        {
            "type": "ingest",
            "version": 1,
            "store": store.shown,
            "runs": [
                {
                    "source": run.source,
                    "id": run.run_id,
                    "result": run.result,
                    "outcomes": sum(run.counts.values()),
                    "message": run.message,
                }
                for run in summary.runs
            ],
            "totals": {
                "runs": len(summary.runs),
                **{name: summary.count(name) for name in ("imported", "updated", "unchanged", "failed", "skipped")},
                "outcomes": summary.outcomes,
                "comparisons": summary.comparisons,
            },
        },
        ensure_ascii=False,
    )
