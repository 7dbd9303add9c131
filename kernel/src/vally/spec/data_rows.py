"""Rows of the data files that `stimuli_from` names: JSONL, CSV and YAML."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vally.spec.diagnostics import Collector, Place, related
from vally.spec.files import decode, read_file
from vally.spec.loading import Loading
from vally.spec.nodes import MappingNode, Node, SequenceNode, Source
from vally.spec.plain_values import read_plain
from vally.spec.reader import read_text
from vally.spec.scalars import MAX_INTEGER

MAX_BYTES = 64 * 2**20
MAX_ROWS = 10_000
FORMATS = ("jsonl", "csv", "yaml")
_BY_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".yaml": "yaml", ".yml": "yaml", ".json": "yaml"}
_MAX_FIELD = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its 1-based number, the line it starts at, and its columns."""

    number: int
    line: int
    columns: Mapping[str, Any]


@dataclass(slots=True)
class DataFile:
    """A data file that was read; `columns` are the names that any row has, in order."""

    source: Source
    rows: list[Row] = field(default_factory=list)
    columns: dict[str, None] = field(default_factory=dict)


class BadRow(Exception):
    """A row that breaks the rules of its format."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


def format_of(name: str) -> str | None:
    """The format that a file name tells, or None."""
    return next((kind for suffix, kind in _BY_SUFFIX.items() if name.lower().endswith(suffix)), None)


def read_rows(loading: Loading, source: Source, kind: str, delimiter: str, at: Node, place: Place) -> DataFile | None:
    """All rows of a file, or None after a diagnostic at the key that names it."""
    findings = Collector()
    data = read_file(source.path, source, MAX_BYTES, findings)
    text = None if data is None else decode(data, source, findings)
    if text is None:
        loading.collector.extend(findings.ordered())
        return None
    file = DataFile(source)
    try:
        for row in _rows(text, source, kind, delimiter):
            file.rows.append(row)
            file.columns.update(dict.fromkeys(row.columns))
    except BadRow as error:
        note = related(Node(source, error.line, 1), error.reason)
        loading.collector.add(
            "invalid-data-row",
            at,
            place,
            related=[note],
            file=source.display,
            line=error.line,
            reason=error.reason,
        )
        return None
    return file


def _rows(text: str, source: Source, kind: str, delimiter: str) -> Iterator[Row]:
    if kind == "csv":
        return _csv(text, delimiter)
    return _yaml(text, source) if kind == "yaml" else _jsonl(text)


def _jsonl(text: str) -> Iterator[Row]:
    number = 0
    lines = text.split("\n")
    for line, content in enumerate(lines, 1):
        if not content.strip():
            continue
        number += 1
        try:
            columns = json.loads(content, parse_constant=_no_constant, object_pairs_hook=_unique)
        except RecursionError:
            raise BadRow(line, "nested too deeply") from None
        except ValueError as error:
            raise BadRow(line, getattr(error, "msg", None) or str(error)) from None
        if not isinstance(columns, dict):
            raise BadRow(line, "a row must be a JSON object")
        yield Row(number, line, columns)


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    columns = dict(pairs)
    if len(columns) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"duplicate key '{next(name for name in names if names.count(name) > 1)}'")
    if any(_is_inexact(value) for value in columns.values()):
        raise ValueError("a number is too large to be exact")
    return columns


def _is_inexact(value: object) -> bool:
    if isinstance(value, list):
        return any(_is_inexact(item) for item in value)
    if isinstance(value, float):
        return not math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_INTEGER


def _csv(text: str, delimiter: str) -> Iterator[Row]:
    limit = csv.field_size_limit(_MAX_FIELD)
    try:
        # All at once, so that the limit, which the whole process shares, is back before anyone else reads CSV.
        records = list(_records(text, delimiter))
    finally:
        csv.field_size_limit(limit)
    if not records:
        raise BadRow(1, "there is no header line")
    header = _header(records[0][1], records[0][0])
    for number, (line, cells) in enumerate(records[1:], 1):
        if len(cells) != len(header):
            raise BadRow(line, f"{len(cells)} cells, the header has {len(header)}")
        yield Row(number, line, dict(zip(header, cells, strict=True)))


def _records(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Records that are not blank, each with the line it starts at."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise BadRow(line, str(error)) from None


def _header(cells: list[str], line: int) -> list[str]:
    if not cells or not all(name.strip() for name in cells):
        raise BadRow(line, "column names must not be empty")
    if len(set(cells)) < len(cells):
        twice = next(name for name in cells if cells.count(name) > 1)
        raise BadRow(line, f"column '{twice}' occurs twice")
    return cells


def _yaml(text: str, source: Source) -> Iterator[Row]:
    findings = Collector()
    node = read_text(text, source, findings)
    values: list[Any] = []
    if node is not None and isinstance(node, SequenceNode):
        values = [read_plain(item, Place(), findings) for item in node.items]
    wrong = next((item for item in findings.ordered() if item.level == "error"), None)
    if wrong is not None:
        raise BadRow(wrong.line or 1, wrong.message)
    if node is None:
        return
    if not isinstance(node, SequenceNode):
        raise BadRow(node.line, "the file must be a list of mappings")
    for number, (item, columns) in enumerate(zip(node.items, values, strict=True), 1):
        if not isinstance(item, MappingNode):
            raise BadRow(item.line, "a row must be a mapping")
        yield Row(number, item.line, columns)
