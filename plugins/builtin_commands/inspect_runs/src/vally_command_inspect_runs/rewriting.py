"""A results file written anew: changed records in their places, a new summary, and the reports that were there."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from vally import (
    RunOptions,
    RunSummary,
    TrialFacts,
    VallyError,
    atomic_write,
    described,
    dump_record,
    parse_json,
    plain_value,
    print_warning,
    read_json,
    read_trials,
    record_line,
)
from vally_command_inspect_runs.replay import Replay, ReplaySettings, load_result
from vally_command_inspect_runs.reports import writers, writing_again

if TYPE_CHECKING:
    from vally import CliContext, PluginHost, StoredTrials, TrialEntry

PREVIOUS = ".prev"
EXPERIMENT_SUMMARY = "experiment-summary.json"


class Rewriting:
    """Collects changed records outside of memory until the file is written; a context manager."""

    def __init__(self, trials: StoredTrials) -> None:
        self._trials = trials
        self._spool: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed by __exit__
        self._places: dict[int, tuple[int, int]] = {}

    def __enter__(self) -> Rewriting:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._spool.close()

    def replace(self, entry: TrialEntry, record: dict[str, Any]) -> None:
        """Take the new record of a trial."""
        line = record_line(record)
        start = self._spool.seek(0, os.SEEK_END)
        self._spool.write(line)
        self._places[entry.offset] = (start, len(line))

    def changed_lines(self) -> Iterator[bytes]:
        """The new lines in the order of the file."""
        for offset in sorted(self._places):
            yield self._changed(offset)

    def _changed(self, offset: int) -> bytes:
        start, length = self._places[offset]
        self._spool.seek(start)
        return self._spool.read(length)

    def write(self, context: CliContext, host: PluginHost) -> RunSummary:
        """Replace the file by rename, keeping the former one beside it, and write the reports anew.

        Raises `VallyError` when that is not possible; the former file is in its place then.
        """
        path, summary = self._trials.path, self._summary()
        try:
            _keep(path, path.with_name(path.name + PREVIOUS))
            atomic_write(path, self._lines(summary))
        except OSError as error:
            raise VallyError(f"cannot be written: {error.strerror or error}", where=path.name) from error
        _write_reports(path, context, host)
        return summary

    def _lines(self, summary: RunSummary) -> Iterator[bytes]:
        with self._trials.path.open("rb") as file:
            for entry in self._trials.entries:
                if entry.offset in self._places:
                    yield self._changed(entry.offset)
                else:
                    file.seek(entry.offset)
                    yield file.read(entry.length) + b"\n"
        yield record_line(dump_record(summary))

    def _summary(self) -> RunSummary:
        """The summary of all trials as they are now; when and how the run ended stays."""
        former = self._trials.summary
        assert former is not None
        replay = Replay(self._trials, _settings(self._trials.path))
        tally = replay.tally()
        for entry, record in self._trials.records(self._trials.entries):
            if entry.offset in self._places:
                record = parse_json(self._changed(entry.offset))
            index, threshold = replay.place(entry)
            tally.add(TrialFacts.from_result(load_result(record, entry), threshold, eval_index=index))
        made = tally.run_summary(
            run_id=former.run_id,
            started_at=former.started_at,
            completed_at=former.completed_at,
            duration_ms=former.duration_ms,
            jsonl_path=former.jsonl_path,
            status=former.status,
            stop_reason=former.stop_reason,
        )
        return made.model_copy(update=dict(former.model_extra or {}))


def _settings(path: Path) -> ReplaySettings:
    return ReplaySettings(run_dir=path.parent, run_dir_display=path.parent.name, options=RunOptions(), environ={})


def _keep(path: Path, previous: Path) -> None:
    """Let the former file have a second name, or a copy where that is not possible."""
    with contextlib.suppress(FileNotFoundError):
        previous.unlink()
    try:
        os.link(path, previous)
    except OSError:
        shutil.copy2(path, previous)


def _write_reports(path: Path, context: CliContext, host: PluginHost) -> None:
    """Tell the reporters of the reports that are there of the run as it is now."""
    trials = read_trials(path)
    for record, there in writers(host, path.parent):
        settings = ReplaySettings(
            run_dir=path.parent,
            run_dir_display=path.parent.name,
            options=writing_again(record),
            environ=context.environ,
        )
        try:
            Replay(trials, settings).tell(host.create(record))
        except Exception as error:
            print_warning(f"{', '.join(there)} was not written anew: {described(error)}")


def update_experiment(directory: Path, summaries: Sequence[RunSummary]) -> None:
    """Let the summary of an experiment tell the verdicts that its variants have now.

    A variant whose agents had something else than they should stays not passed, whatever graders say of it.
    """
    path = directory / EXPERIMENT_SUMMARY
    document = read_json(path)
    variants = document.get("variants")
    if not isinstance(variants, list):
        return
    contaminated = document.get("contaminated")
    spoiled = [item.get("variant") for item in contaminated or () if isinstance(item, dict)]
    for variant in variants:
        name = variant.get("name") if isinstance(variant, dict) else None
        now = next((item for item in summaries if any(part.variant == name for part in item.evals)), None)
        if now is not None:
            passed = now.passed and name not in spoiled
            variant |= {"passed": passed, "evals": [dump_record(part) for part in now.evals]}
    document["passed"] = all(item.passed for item in summaries) and not spoiled
    document["hadExecutionErrors"] = any(item.had_execution_errors for item in summaries)
    atomic_write(path, json.dumps(plain_value(document).value, ensure_ascii=False, indent=2) + "\n")
