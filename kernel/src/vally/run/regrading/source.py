"""The inputs of a re-grading: what they hold, document by document, without keeping it in memory."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from vally.errors import VallyError
from vally.model.jsonio import parse_json
from vally.model.results import MAIN_VARIANT, UNKNOWN, stimulus_name
from vally.run.imports.atif_checks import is_atif
from vally.run.imports.session import LOG_NAME, is_session_event
from vally.run.json_layout import look_at
from vally.run.results_file import RESULTS_NAME, ReadProblem, RecordLine, only_objects, read_lines

Format = Literal["record", "atif", "session"]
_GRADABLE = {"success": True, "ok": True, None: True, "error": False, "skipped": False}


@dataclass(slots=True)
class Document:
    """One recorded trajectory; of a record only what tells where it belongs.

    `place` is (offset, length) of its line in the input, or the parsed document itself. Without `eval_name` and
    `eval_file` the record does not say which eval it is from; `status` is None for what may be graded.
    """

    format: Format
    source: Source
    line: int
    place: tuple[int, int] | Mapping[str, Any] | None = None
    stimulus: str = UNKNOWN
    eval_name: str = ""
    eval_file: str = ""
    variant: str = MAIN_VARIANT
    model: str | None = None
    trial_index: int | None = None
    total_trials: int | None = None
    status: str | None = None

    @property
    def where(self) -> str:
        """The document as messages name it."""
        return f"{self.source.label}:{self.line}" if self.format == "record" else self.source.label

    def value(self) -> dict[str, Any]:
        """The parsed document, read anew so that nobody else holds it. Raises `OSError` and `ValueError`."""
        if isinstance(self.place, tuple):
            value = parse_json(self.source.bytes_at(*self.place))
        else:
            value = self.place
        if not isinstance(value, Mapping):
            raise ValueError("the input has changed")
        return dict(value)


@dataclass(slots=True)
class Source:
    """An open input. `run_dir` is the directory of its file; `problems` are the lines that are no records."""

    label: str
    file: IO[bytes]
    path: Path | None = None
    problems: list[ReadProblem] = field(default_factory=list)

    @property
    def run_dir(self) -> Path | None:
        """The directory of the file; None for standard input."""
        return None if self.path is None else self.path.parent

    def bytes_at(self, offset: int, length: int) -> bytes:
        """Bytes of the input."""
        if hasattr(os, "pread"):
            return os.pread(self.file.fileno(), length, offset)
        self.file.seek(offset)
        return self.file.read(length)

    def close(self) -> None:
        """Close the input."""
        with suppress(OSError):
            self.file.close()


def open_source(word: str, cwd: Path, stdin: IO[bytes] | None) -> Source:
    """Open a file, the results or the log of a directory, or standard input (`-`). Raises `VallyError`.

    What cannot be read twice, such as a pipe, is copied to a temporary file that has no name.
    """
    if word == "-":
        if stdin is None:
            raise VallyError("standard input is closed", where="-", code="input-missing")
        return Source("<stdin>", _readable_twice(stdin))
    path = cwd / word
    if path.is_dir():
        path = _inside(path, word)
    try:
        file = path.open("rb")
    except OSError as error:
        raise VallyError(error.strerror or str(error), where=word, code="input-missing") from None
    return Source(word, _readable_twice(file), path)


def _inside(directory: Path, word: str) -> Path:
    for name in (RESULTS_NAME, LOG_NAME):
        if (directory / name).is_file():
            return directory / name
    raise VallyError(f"the directory holds neither {RESULTS_NAME} nor {LOG_NAME}", where=word, code="input-missing")


def _readable_twice(file: IO[bytes]) -> IO[bytes]:
    with suppress(OSError, ValueError):
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            # Somebody may have read a part of standard input before.
            file.seek(0, 1)
            return file
    copy: IO[bytes] = tempfile.TemporaryFile(prefix="vally-grade-")  # noqa: SIM115  # closed with its source
    shutil.copyfileobj(file, copy)
    copy.seek(0)
    return copy


def read_source(source: Source) -> list[Document]:
    """Tell what an input holds; its problems are gathered in the source. Raises `OSError`."""
    file = source.file
    start = file.tell()
    whole, first = look_at(file)
    file.seek(start)
    if whole is not None:
        return list(_listed(source, whole))
    if first is not None and is_session_event(first):
        return [Document("session", source, 1)]
    documents: dict[object, Document] = {}
    for line in read_lines(file, source.problems):
        document = _of_line(source, line, start)
        if document is not None:
            item_id = line.record.get("itemId")
            # Of several lines with one id the last counts, at the place of the first.
            key = item_id if isinstance(item_id, str) and item_id else line.line
            documents[key] = document
    return list(documents.values())


def _listed(source: Source, values: list[Any]) -> Iterator[Document]:
    for value in only_objects(values, source.problems):
        document = _document(source, value, 1)
        if document is not None:
            document.place = value
            yield document


def _of_line(source: Source, line: RecordLine, start: int) -> Document | None:
    document = _document(source, line.record, line.line)
    if document is not None:
        document.place = (start + line.offset, len(line.raw))
    return document


def _document(source: Source, record: Mapping[str, Any], line: int) -> Document | None:
    """What a JSON object is; None for what is of no interest here, and for what is wrong."""
    if is_atif(record):
        return Document("atif", source, line)
    kind = record.get("type")
    if kind not in (None, "trial-result"):
        return None
    if kind is None and "trajectory" not in record:
        problem = "has neither a type nor a trajectory"
    elif not _known_status(record.get("status")):
        problem = f"/status must be success, error or skipped, not {record.get('status')!r}"
    else:
        return _record(source, record, line)
    source.problems.append(ReadProblem(code="bad-record", line=line, message=problem))
    return None


def _known_status(status: object) -> bool:
    return status is None or (isinstance(status, str) and status in _GRADABLE)


def _record(source: Source, record: Mapping[str, Any], line: int) -> Document:
    status = record.get("status")
    return Document(
        "record",
        source,
        line,
        stimulus=sys.intern(stimulus_name(record)),
        eval_name=_text(record.get("evalName")),
        eval_file=_text(record.get("evalFilePath")),
        variant=_text(record.get("variant")) or MAIN_VARIANT,
        model=_text(record.get("model")) or None,
        trial_index=_count(record.get("trialIndex")),
        total_trials=_count(record.get("totalTrials")),
        status=None if _GRADABLE[status] else status,
    )


def _text(value: object) -> str:
    # The same few names stand in every record.
    return sys.intern(value) if type(value) is str else ""


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None
