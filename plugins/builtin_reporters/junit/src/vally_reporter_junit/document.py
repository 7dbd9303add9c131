"""The whole file, made piece by piece: a long run has more test cases than should be held in memory."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from vally import RunRecords
from vally_reporter_junit.elements import Report, closed, opened, properties, written
from vally_reporter_junit.suites import SuiteTally, count, statistics

if TYPE_CHECKING:
    from pathlib import Path

    from vally import EvalSummary, RunStart, RunSummary

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_PIECE = 1 << 16


def document(start: RunStart, summary: RunSummary, results: Path) -> Iterator[bytes]:
    """The pieces of the file, encoded. Raises `OSError` when the records cannot be read."""
    # Counts stand before what they count, so the test cases wait in a file.
    with tempfile.TemporaryFile() as cases:
        tallies = list(_spooled(start, results, cases))
        report = Report("vally")
        count(report, sum((tally.counts for tally, _ in tallies), Counter()))
        yield DECLARATION.encode()
        yield opened(report, 0).encode()
        summaries = {(item.eval_file_path, item.variant, item.model): item for item in summary.evals}
        cases.seek(0)
        for tally, size in tallies:
            planned = tally.planned
            key = (planned.eval_file_path, planned.variant, planned.model)
            yield from _suite(tally, summaries.get(key), cases, size)
        yield closed(report, 0).encode()


def _spooled(start: RunStart, results: Path, cases: IO[bytes]) -> Iterator[tuple[SuiteTally, int]]:
    """Write the test cases of all suites, and give the tally of each with the bytes that its cases have."""
    records = RunRecords(results)
    for planned in start.evals:
        tally, size = SuiteTally(start, planned), 0
        for result in records.of(planned):
            size += cases.write(written(tally.case(result), 2).encode())
        yield tally, size


def _suite(tally: SuiteTally, summary: EvalSummary | None, cases: IO[bytes], size: int) -> Iterator[bytes]:
    suite = tally.suite()
    yield opened(suite, 1).encode()
    yield written(properties(tally.properties(summary)), 2).encode()
    while size:
        piece = cases.read(min(size, _PIECE))
        size -= len(piece)
        yield piece
    facts = statistics(summary)
    if facts is not None:
        yield written(facts, 2).encode()
    yield closed(suite, 1).encode()
