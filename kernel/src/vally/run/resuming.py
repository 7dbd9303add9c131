"""Continuing a run in its directory: which records stay, and the results files rewritten with them."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.model.jsonio import parse_json, without_surrogates
from vally.run.atomic import sync_directory
from vally.run.elapsed import Span, busy_ms, merged, record_span
from vally.run.results_file import RESULTS_NAME, index_results
from vally.run.verdicts import STOP_REASONS

if TYPE_CHECKING:
    from vally.run.run_dir import RunDirectory
    from vally.run.trial import TrialItem


@dataclass(frozen=True, slots=True)
class Place:
    """Where the line of a record lies: the part of the run directory, and its bytes in the results file there."""

    path: Path
    offset: int
    length: int

    def read(self) -> bytes:
        """The line, without its LF."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            return file.read(self.length)


@dataclass(slots=True)
class Kept:
    """The records of earlier attempts that stay, by item id, and how long those attempts took in milliseconds."""

    started_at: str | None = None
    places: dict[str, Place] = field(default_factory=dict)
    duration_ms: int = 0

    def place(self, item: TrialItem) -> Place | None:
        """Where the record of an item lies; None for one that is to be run."""
        return self.places.get(without_surrogates(item.item_id)) if self.places else None


def keep_records(parts: Mapping[str, RunDirectory], items: Iterable[TrialItem], started_at: str) -> Kept:
    """Rewrite the results files of a run with the records that stay, and clear the way for all other items.

    Kept are trials that were executed and those that the executor skipped. The directory of an item that is to be run
    again is removed, so that it holds nothing of an earlier attempt. Raises `OSError`.
    """
    kept = Kept(started_at=started_at)
    elapsed = _Elapsed()
    for directory in parts.values():
        directory.make()
        _keep_part(directory.results_path, kept, elapsed)
    kept.duration_ms = elapsed.total_ms
    for item in items:
        if kept.place(item) is None:
            shutil.rmtree(parts[item.part].trial_dir(item.segments), ignore_errors=True)
    return kept


@dataclass(slots=True)
class _Elapsed:
    """How long earlier attempts took: what the last of them said, or while trials ran when it was killed."""

    spans: list[Span] = field(default_factory=list)
    summaries: list[int] = field(default_factory=list)

    @property
    def total_ms(self) -> int:
        return max(self.summaries) if self.summaries else busy_ms(merged(self.spans))

    def add(self, record: Mapping[str, Any]) -> None:
        span = record_span(record.get("startedAt"), _milliseconds(record))
        if span is not None:
            self.spans.append(span)


def _milliseconds(record: Mapping[str, Any]) -> int:
    found = record.get("durationMs")
    return found if isinstance(found, int) else 0


def _keep_part(path: Path, kept: Kept, elapsed: _Elapsed) -> None:
    source = results_to_resume(path)
    if not source.exists():
        return
    places: dict[str, Place] = {}
    restart_results(path, _kept_lines(source, path, places, elapsed))
    kept.places |= places


def _kept_lines(source: Path, target: Path, places: dict[str, Place], elapsed: _Elapsed) -> Iterator[bytes]:
    index = index_results(source)
    if index.summary is not None:
        elapsed.summaries.append(_milliseconds(index.summary))
    offset = 0
    for raw in index.raw_lines():
        record = parse_json(raw)
        elapsed.add(record)
        if not stays(record):
            continue
        places[str(record.get("itemId"))] = Place(target, offset, len(raw))
        offset += len(raw) + 1
        yield raw


def stays(record: Mapping[str, Any]) -> bool:
    """Whether the record of a trial is final: it was executed, or its executor declined it."""
    if record.get("status") == "skipped":
        return record.get("skipReason") not in STOP_REASONS
    return record.get("status") == "success"


def results_to_resume(path: Path) -> Path:
    """The file that holds the records of an interrupted run: `results.jsonl`, else what a crash left as `.prev`."""
    previous = _previous(path)
    return previous if not path.exists() and previous.exists() else path


def restart_results(path: Path, kept: Iterable[bytes]) -> None:
    """Replace a results file by the kept lines (without LF); the complete former file stays as `<name>.prev`.

    A crash at any moment leaves the former or the new file whole. Raises `OSError`; nothing has changed then.
    """
    _remove_leftovers(path.parent)
    token = secrets.token_hex(6)
    fresh = path.with_name(f".{path.name}.{token}.tmp")
    former = path.with_name(f".{_previous(path).name}.{token}.tmp")
    try:
        with fresh.open("xb") as file:
            for line in kept:
                file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            _second_name(path, former)
            former.replace(_previous(path))
        fresh.replace(path)
        sync_directory(path.parent)
    finally:
        for leftover in (fresh, former):
            leftover.unlink(missing_ok=True)


def _remove_leftovers(directory: Path) -> None:
    for leftover in directory.glob(f".{RESULTS_NAME}*.tmp"):
        leftover.unlink(missing_ok=True)


def _second_name(path: Path, name: Path) -> None:
    try:
        os.link(path, name)
    except OSError:
        # The file system has no hard links.
        shutil.copyfile(path, name)


def _previous(path: Path) -> Path:
    return path.with_name(f"{path.name}.prev")
