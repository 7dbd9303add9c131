"""One run into a store, in one transaction."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.exc import DBAPIError

from vally_command_results.importing.finding import (
    EXPERIMENT_MANIFESTS,
    MANIFEST_NAME,
    PLAN_NAME,
    PROVENANCE_NAME,
    SUMMARY_NAME,
    FoundRun,
)
from vally_command_results.importing.outcomes import (
    UNKNOWN,
    BadRecord,
    OutcomeRows,
    is_outcome,
    outcome_rows,
    stimulus_of,
)
from vally_command_results.importing.run_facts import BadRun, Line, RunFacts, lines, read_facts
from vally_command_results.importing.run_rows import EvalRows, run_row
from vally_command_results.importing.side_files import SideFiles
from vally_command_results.importing.tally import OutcomeTally
from vally_command_results.importing.values import whole
from vally_command_results.store import schema
from vally_command_results.store.opening import Store, count_change

BATCH = 500
EXTRA_BYTES = 16 * 1024 * 1024
NO_RECORDS = "no trial records"
LEVEL = 1
"""Records compress well at any level; this one costs least."""
Result = Literal["imported", "updated", "unchanged", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """What became of one run; `warnings` are lines for people."""

    source: str
    result: Result
    run_id: str | None = None
    message: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """Which runs to leave alone."""

    skip_existing: bool = False
    complete_only: bool = False
    dry_run: bool = False


def import_run(store: Store, found: FoundRun, options: ImportOptions) -> ImportedRun:
    """Import a run, or say why not; nothing of a run that fails stays."""
    try:
        facts = read_facts(found)
        if facts.first is None and not _is_planned(facts):
            return ImportedRun(found.source, "skipped", message=NO_RECORDS)
        if options.complete_only and not facts.complete:
            return ImportedRun(found.source, "skipped", message="incomplete")
        warnings = () if facts.torn is None else (facts.torn,)
        with store.writing(facts.key) as connection:
            result, message = _decide(connection, facts, options)
            if result == "unchanged" or options.dry_run:
                return ImportedRun(found.source, result, facts.key[:32], message, {}, warnings)
            counts = RunImport(connection, facts).write(replace=result == "updated")
            count_change(connection)
        return ImportedRun(found.source, result, facts.key[:32], message, counts, warnings)
    except (BadRun, BadRecord) as error:
        return ImportedRun(found.source, "failed", message=str(error).removeprefix(f"{found.source}/"))
    except DBAPIError as error:
        return ImportedRun(found.source, "failed", message=f"the store refused it: {error.orig}")
    except OSError as error:
        return ImportedRun(found.source, "failed", message=f"cannot be read: {error.strerror or error}")


def _is_planned(facts: RunFacts) -> bool:
    plan = facts.found.experiment.plan.get("evals")
    name = facts.found.path.parent.name
    head = facts.found.experiment.head.get("variantNames")
    return isinstance(plan, list) and isinstance(head, list) and name in head and facts.summary is None


def _decide(connection: Connection, facts: RunFacts, options: ImportOptions) -> tuple[Result, str | None]:
    columns = schema.runs.c
    query = select(columns.content_sha256, columns.complete, columns.completed_at).where(columns.run_key == facts.key)
    known = connection.execute(query).one_or_none()
    if known is None:
        return "imported", None
    if options.skip_existing or known.content_sha256 == facts.sha256:
        return "unchanged", None
    if known.complete and not facts.complete:
        return "unchanged", "older than what is stored"
    if known.completed_at and facts.completed_at and facts.completed_at < known.completed_at:
        return "unchanged", "older than what is stored"
    return "updated", None


class RunImport:
    """Writes one run over an open transaction."""

    def __init__(self, connection: Connection, facts: RunFacts) -> None:
        self._connection = connection
        self._facts = facts
        self._row = run_row(facts)
        self._run_id: str = self._row["id"]
        self._evals = EvalRows(facts, self._run_id)
        self._eval_ids: dict[int, int] = {}
        self._tally = OutcomeTally()
        self._indexes: dict[tuple[str, str], int] = {}
        self._side_files = SideFiles(facts.found.path.parent)

    def write(self, *, replace: bool) -> dict[str, int]:
        """Write everything; returns the counts of outcomes by verdict."""
        if replace:
            self._connection.execute(delete(schema.runs).where(schema.runs.c.id == self._run_id))
        self._connection.execute(insert(schema.runs), [self._row])
        for row in list(self._evals.rows()):
            self._insert_eval(row)
        self._next_grader = (self._connection.scalar(select(func.max(schema.grader_results.c.id))) or 0) + 1
        batch: list[tuple[Line, OutcomeRows | None]] = []
        for line in lines(self._facts.found):
            if line.record is None:
                continue
            rows = self._rows(line, line.record) if is_outcome(line.record) else None
            batch.append((line, rows))
            if len(batch) == BATCH:
                self._flush(batch)
        self._flush(batch)
        self._extra_files()
        closing = self._tally.run_columns()
        self._connection.execute(update(schema.runs).where(schema.runs.c.id == self._run_id).values(**closing))
        return self._tally.counts()

    def _rows(self, line: Line, record: Mapping[str, Any]) -> OutcomeRows:
        evaluation = self._evals.of(record)
        if id(evaluation) not in self._eval_ids:
            self._insert_eval(evaluation)
        index = self._index(record)
        item_id = _item_id(record, index)
        try:
            rows = outcome_rows(
                record,
                run_key=self._facts.key,
                run_id=self._run_id,
                seq=line.number,
                item_id=item_id,
                repeated=item_id in self._facts.repeated,
                index=index,
                threshold=evaluation["threshold"],
            )
        except BadRecord as error:
            raise BadRun(f"results.jsonl: line {line.number}: {error}") from error
        rows.outcome["eval_id"] = self._eval_ids[id(evaluation)]
        rows.outcome["artifact_dir"] = self._side_files.artifacts_of(rows.outcome, evaluation["file_path"])
        self._side_files.note(record)
        self._tally.add(rows.outcome, evaluation)
        return rows

    def _index(self, record: Mapping[str, Any]) -> int:
        key = (stimulus_of(record), str(record.get("model")))
        given = whole(record.get("trialIndex"))
        index = self._indexes.get(key, 0) if given is None else given
        self._indexes[key] = index + 1
        return index

    def _insert_eval(self, row: dict[str, Any]) -> None:
        result = self._connection.execute(insert(schema.evals).values(**row).returning(schema.evals.c.id))
        self._eval_ids[id(row)] = result.scalar_one()

    def _flush(self, batch: list[tuple[Line, OutcomeRows | None]]) -> None:
        found = [rows for _, rows in batch if rows is not None]
        tables = (
            (schema.outcomes, (rows.outcome for rows in found)),
            (schema.outcome_tags, chain.from_iterable(rows.tags for rows in found)),
            (schema.grader_results, chain.from_iterable(map(self._numbered, found))),
            (schema.tool_calls, chain.from_iterable(rows.calls for rows in found)),
            (schema.raw_records, self._raw(batch)),
        )
        for table, rows in tables:
            listed = list(rows)
            if listed:
                self._connection.execute(insert(table), listed)
        batch.clear()

    def _numbered(self, rows: OutcomeRows) -> Iterator[dict[str, Any]]:
        """Grader rows with ids, so that children can name their parents."""
        ids: dict[str, int] = {}
        for row in rows.graders:
            ids[row["path"]] = self._next_grader
            parent = row["path"].rpartition(".")[0]
            yield {**row, "id": self._next_grader, "parent_id": ids.get(parent)}
            self._next_grader += 1

    def _raw(self, batch: list[tuple[Line, OutcomeRows | None]]) -> Iterator[dict[str, Any]]:
        for line, rows in batch:
            kind = (line.record or {}).get("type")
            yield {
                "run_id": self._run_id,
                "seq": line.number,
                "outcome_id": None if rows is None else rows.outcome["id"],
                "record_type": kind if isinstance(kind, str) else None,
                "encoding": "zlib",
                "size": len(line.raw),
                "body": zlib.compress(line.raw, LEVEL),
            }

    def _extra_files(self) -> None:
        directory = self._facts.found.path.parent
        paths = {name: directory / name for name in (PROVENANCE_NAME, MANIFEST_NAME)}
        if self._facts.kind == "experiment":
            names = (PLAN_NAME, *EXPERIMENT_MANIFESTS, SUMMARY_NAME)
            paths |= {name: directory.parent / name for name in names}
        paths |= {name: directory / name for name in self._side_files.names}
        rows = [
            {"run_id": self._run_id, "name": name, "body": zlib.compress(path.read_bytes())}
            for name, path in paths.items()
            if _may_be_stored(path, directory)
        ]
        if rows:
            self._connection.execute(insert(schema.extra_files), rows)


def _may_be_stored(path: Path, directory: Path) -> bool:
    if not path.is_file() or path.is_symlink() or path.stat().st_size > EXTRA_BYTES:
        return False
    return path.resolve().is_relative_to(directory.parent.resolve())


def _item_id(record: Mapping[str, Any], index: int) -> str:
    given = record.get("itemId")
    if isinstance(given, str) and given:
        return given
    names = (record.get("evalFilePath"), record.get("variant"), record.get("model"), stimulus_of(record))
    parts = [name if isinstance(name, str) and name else UNKNOWN for name in names]
    return "::".join([*parts, f"trial-{index}"])
