"""`results.jsonl`: lines appended one by one so that a crash loses none, and read back however they are."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from vally.errors import VallyError
from vally.model.jsonio import parse_json
from vally.run.atomic import atomic_write, sync_directory
from vally.run.json_layout import look_at

__all__ = [
    "RESULTS_NAME",
    "IndexEntry",
    "ReadProblem",
    "RecordLine",
    "ResultsFile",
    "ResultsIndex",
    "ResultsWriteError",
    "atomic_write",
    "index_results",
    "only_objects",
    "read_documents",
    "read_lines",
]

RESULTS_NAME = "results.jsonl"


class ResultsWriteError(VallyError):
    """A line could not be written; the file ends with its last complete line, as far as that was possible."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"cannot write {path}: {reason}",
            code="results-write-failed",
            hints=("free some space or fix the permissions, then continue with --resume",),
        )


class ResultsFile:
    """A file of JSON lines opened for appending; every line is on disk when `append` returns.

    An existing file may end with a torn line, which is cut off, or with a line that lacks its LF, which gets one.
    One writer at a time; not thread-safe. `display` says how messages name a path.
    """

    def __init__(self, path: Path, display: Callable[[Path], str] = str) -> None:
        self.path = path
        self._shown = display(path)
        is_new = not path.exists()
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        except OSError as error:
            raise ResultsWriteError(self._shown, _reason(error)) from error
        if is_new:
            sync_directory(path.parent)
        self._size = os.fstat(self._descriptor).st_size
        self._finish_last_line()

    def _finish_last_line(self) -> None:
        tail = _last_line(self.path, self._size)
        if not tail or tail.endswith(b"\n"):
            return
        if _is_record(tail):
            self.append(b"\n")
        else:
            self._cut(self._size - len(tail))

    def append(self, line: bytes) -> None:
        """Write a complete line (with its LF) in one go and sync it; raises `ResultsWriteError`."""
        try:
            written = os.write(self._descriptor, line)
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
            os.fsync(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._cut(self._size)
            raise ResultsWriteError(self._shown, _reason(error)) from error
        self._size += len(line)

    def _cut(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)
        os.fsync(self._descriptor)
        self._size = size

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _last_line(path: Path, size: int) -> bytes:
    """What follows the last LF but one, in a file of `size` bytes."""
    step = 64 * 1024
    with path.open("rb") as file:
        start = size
        while start > 0:
            start = max(0, start - step)
            file.seek(start)
            tail = file.read(size - start)
            cut = tail[:-1].rfind(b"\n")
            if cut >= 0:
                return tail[cut + 1 :]
            step *= 4
            if start == 0:
                return tail
    return b""


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(parse_json(line), dict)
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadProblem:
    """A line that is no record: `torn-record` for a last line without LF, else `bad-record`. Lines count from 1."""

    code: str
    line: int
    message: str


def problem_lines(problems: Sequence[ReadProblem], file: str, *, most: int = 10) -> list[str]:
    """What people are told of the lines of a file that are no records: the first ones, and how many more there are."""
    told = [f"{file}:{problem.line}: {problem.message} [{problem.code}]" for problem in problems[:most]]
    more = len(problems) - len(told)
    if more > 0:
        told.append(f"{file}: {more} more {'line is no record' if more == 1 else 'lines are no records'}")
    return told


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLine:
    """One readable line: the parsed object, its place in the file, and its bytes without LF."""

    record: dict[str, Any]
    line: int
    offset: int
    raw: bytes


def read_lines(file: IO[bytes], problems: list[ReadProblem]) -> Iterator[RecordLine]:
    """Yield the records of JSON lines one at a time, of any length; what is not a record goes to `problems`."""
    offset = 0
    complete = True
    for number, raw in enumerate(file, start=1):
        if not complete:
            return  # Not a line of its own: a writer appended this to the last line while it was read.
        start, offset = offset, offset + len(raw)
        complete = raw.endswith(b"\n")
        text = raw.rstrip(b"\r\n")
        if not text.strip():
            continue
        try:
            record = parse_json(text)
        except ValueError as error:
            problems.append(_problem(number, complete, f"not valid JSON: {error}"))
            continue
        if isinstance(record, dict):
            yield RecordLine(record=record, line=number, offset=start, raw=text)
        else:
            problems.append(_problem(number, complete, "not a JSON object"))


def _problem(line: int, complete: bool, message: str) -> ReadProblem:
    return ReadProblem(code="bad-record" if complete else "torn-record", line=line, message=message)


def read_documents(file: IO[bytes], problems: list[ReadProblem]) -> Iterator[dict[str, Any]]:
    """Yield records from JSON lines, or from one JSON object or array of objects laid out in any way."""
    whole, _ = look_at(file)
    file.seek(0)
    if whole is None:
        for line in read_lines(file, problems):
            yield line.record
    else:
        yield from only_objects(whole, problems)


def only_objects(values: Iterable[Any], problems: list[ReadProblem]) -> Iterator[dict[str, Any]]:
    """Yield the values that are objects; what else there is goes to `problems`."""
    for index, value in enumerate(values, start=1):
        if isinstance(value, dict):
            yield value
        else:
            problems.append(ReadProblem(code="bad-record", line=1, message=f"item {index} is not a JSON object"))


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """Where the valid line of an item lies in a file."""

    item_id: str
    line: int
    offset: int
    length: int

    def read(self, path: Path) -> bytes:
        """The line without its end."""
        with path.open("rb") as file:
            file.seek(self.offset)
            return file.read(self.length)


@dataclass(slots=True)
class ResultsIndex:
    """The lines of a results file that count, without their content.

    Of several lines with one `itemId` the last counts, at the place of the first. `summary` is the last run summary.
    `problems` are the lines that are no records.
    """

    path: Path
    entries: list[IndexEntry] = field(default_factory=list)
    summary: dict[str, Any] | None = None
    problems: list[ReadProblem] = field(default_factory=list)

    def raw_lines(self) -> Iterator[bytes]:
        """Bytes of the valid trial lines, without LF, one at a time."""
        with self.path.open("rb") as file:
            for entry in self.entries:
                file.seek(entry.offset)
                yield file.read(entry.length)

    def records(self) -> Iterator[dict[str, Any]]:
        """The valid trial records, one at a time."""
        for raw in self.raw_lines():
            yield parse_json(raw)


def index_results(path: Path) -> ResultsIndex:
    """Read a results file once and remember where its trial records lie. Raises `OSError`."""
    index = ResultsIndex(path)
    entries: dict[str, IndexEntry] = {}
    with path.open("rb") as file:
        for line in read_lines(file, index.problems):
            kind = line.record.get("type")
            if kind == "run-summary":
                index.summary = line.record
            elif kind == "trial-result" or (kind is None and "trajectory" in line.record):
                item_id = _item_id(line)
                entries[item_id] = IndexEntry(item_id, line.line, line.offset, len(line.raw))
    index.entries = list(entries.values())
    return index


def _item_id(line: RecordLine) -> str:
    item_id = line.record.get("itemId")
    # Records without an id cannot replace each other.
    return item_id if isinstance(item_id, str) and item_id else f"\0{line.line}"
