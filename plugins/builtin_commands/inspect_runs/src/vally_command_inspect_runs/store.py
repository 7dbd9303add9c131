"""Runs out of a store, as `vally ingest` fills it: read by the standard library, without what a server needs."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from vally import RunPart, StoredRun, UsageError, VallyError, did_you_mean, parse_json, parse_timestamp
from vally_command_inspect_runs.run_facts import RunFacts, backend_of

if TYPE_CHECKING:
    from vally import CliContext

PREFIX = "sqlite:///"
LATEST = "latest"
_TABLES = {"runs", "evals", "raw_records", "extra_files"}
_NEWEST = "ORDER BY started_at IS NULL, started_at DESC, id"


@dataclass(frozen=True, slots=True)
class RunStore:
    """An open store; a context manager makes one with `open_store`."""

    connection: sqlite3.Connection

    def facts(self) -> Iterator[RunFacts]:
        """All runs, the newest first."""
        for row in self._rows(f"SELECT * FROM runs {_NEWEST}"):  # a constant
            names = self._rows("SELECT DISTINCT name FROM evals WHERE run_id = ? ORDER BY id", row["id"])
            yield RunFacts(
                run=StoredRun(Path(str(row["source"])), ()),
                id=row["recorded_run_id"] or row["id"],
                kind=str(row["kind"]),
                started=parse_timestamp(row["started_at"]),
                evals=[str(item["name"]) for item in names],
                trials=int(row["outcome_count"] or 0),
                passed=int(row["pass_count"] or 0),
                graded=int(row["pass_count"] or 0) + int(row["fail_count"] or 0),
                verdict=_verdict(row),
                duration_ms=row["duration_ms"],
                backend=self._backend(str(row["id"])),
                shown=str(row["id"]),
            )

    def _backend(self, run_id: str) -> str | None:
        for row in self._rows("SELECT body FROM raw_records WHERE run_id = ? ORDER BY seq LIMIT 1", run_id):
            with contextlib.suppress(ValueError, zlib.error):
                return backend_of(parse_json(zlib.decompress(row["body"])))
        return None

    def export(self, word: str | None, directory: Path) -> StoredRun:
        """Write the records of a run to a directory, as they were read; raises `VallyError` when there is none."""
        run_id = self._run_id(word)
        path = directory / "results.jsonl"
        with path.open("wb") as file:
            for row in self._rows("SELECT body FROM raw_records WHERE run_id = ? ORDER BY seq", run_id):
                file.write(zlib.decompress(row["body"]).rstrip(b"\r\n") + b"\n")
        for row in self._rows("SELECT name, body FROM extra_files WHERE run_id = ?", run_id):
            _write_side_file(directory, str(row["name"]), row["body"])
        return StoredRun(directory, (RunPart(path),), is_file=True)

    def _run_id(self, word: str | None) -> str:
        rows = list(self._rows(f"SELECT id, recorded_run_id, source FROM runs {_NEWEST}"))
        if not rows:
            raise VallyError("the store holds no run", code="no-runs", where="--store")
        if word in (None, LATEST):
            return str(rows[0]["id"])
        for row in rows:
            if word in (row["id"], row["recorded_run_id"], row["source"], PurePosixPath(str(row["source"])).name):
                return str(row["id"])
        names = [str(name) for row in rows for name in (row["id"], row["recorded_run_id"]) if name]
        near = did_you_mean(str(word), names)
        hints = [*([near] if near else []), f"runs: {', '.join(str(row['id']) for row in rows[:5])}"]
        raise VallyError(f"no run '{word}' in the store", code="no-run", hints=hints)

    def _rows(self, query: str, *values: object) -> Iterator[sqlite3.Row]:
        try:
            yield from self.connection.execute(query, values)
        except sqlite3.Error as error:
            raise VallyError(f"cannot be read: {error}", where="--store") from error


@contextlib.contextmanager
def open_store(word: str, context: CliContext) -> Iterator[RunStore]:
    """Open a store for reading only. Raises `VallyError` for what is none and `UsageError` for another database."""
    if "://" in word and not word.startswith(PREFIX):
        scheme = word.split(":", 1)[0]
        raise UsageError(f"stores of '{scheme}' cannot be shown, only SQLite files", where="--store")
    path = context.cwd / word.removeprefix(PREFIX)
    if not path.is_file():
        raise VallyError(
            f"no file '{word.removeprefix(PREFIX)}'", where="--store", hints=("fill one with 'vally ingest'",)
        )
    # A connection that may not write leaves files beside the store; where nobody may write it is the only one.
    mode = "rw" if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else "ro"
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.row_factory = sqlite3.Row
        _check(connection)
        yield RunStore(connection)
    finally:
        connection.close()


def _check(connection: sqlite3.Connection) -> None:
    try:
        found = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error as error:
        raise VallyError(f"is no store: {error}", where="--store") from error
    if not found >= _TABLES:
        raise VallyError("is no store of vally", where="--store", hints=("'vally ingest' makes one",))


def _verdict(row: sqlite3.Row) -> str:
    if not row["complete"]:
        return "incomplete"
    if row["partial"]:
        return "partial"
    if row["had_execution_errors"]:
        return "error"
    return "pass" if row["passed"] else "fail"


def _write_side_file(directory: Path, name: str, body: Any) -> None:
    """Write a file that a record names; one whose name leads elsewhere is left out."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or path.name == "results.jsonl":
        return
    target = directory.joinpath(*path.parts)
    with contextlib.suppress(OSError, zlib.error, TypeError):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(zlib.decompress(body))
