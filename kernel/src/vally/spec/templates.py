"""`stimuli_from`: one template stimulus over the rows of a data file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from vally.spec import paths
from vally.spec.data_rows import FORMATS, MAX_ROWS, DataFile, Row, format_of, read_rows
from vally.spec.diagnostics import Place, related
from vally.spec.loading import Loading
from vally.spec.nodes import Entry, Hole, MappingNode, Node, ScalarNode, SequenceNode, Source
from vally.spec.placeholders import is_row
from vally.spec.sections import Key, Section, Table, read_section, wrong_type, wrong_value
from vally.spec.shapes import Choice, Integer, RawShape, Text, any_of
from vally.spec.stimuli import ReadStimulus, read_stimulus
from vally.spec.tags import FilterShape, matches_filter
from vally.text.numbers import es_number
from vally.text.suggest import did_you_mean

ROWS = Table(
    "stimuli_from",
    {
        "file": Key(Text(), "data file", required=True),
        "format": Key(Choice(FORMATS), "default by extension"),
        "delimiter": Key(Text(blank=True, pattern=r"[^\r\n\"]", expected="one character"), "of CSV", default=","),
        "where": Key(FilterShape(), "rows to keep, by their columns"),
        "limit": Key(Integer(1), "most rows to keep"),
        "template": Key(RawShape("template"), "a stimulus with ${row.COLUMN} placeholders", required=True),
    },
)


def expand_rows(loading: Loading, node: Node, place: Place) -> list[ReadStimulus]:
    """The stimuli of one `stimuli_from`, or of a list of them."""
    items = node.items if isinstance(node, SequenceNode) else [node]
    expanded = []
    for index, item in enumerate(items):
        where = place.item(index) if isinstance(node, SequenceNode) else place
        section = read_section(item, ROWS, where, loading.collector)
        if section is not None:
            expanded += _expand(loading, section)
    return expanded


def _expand(loading: Loading, section: Section) -> list[ReadStimulus]:
    template = section.get("template")
    if template is not None and not isinstance(template, MappingNode):
        wrong_type(template, section.place.key("template"), loading.collector, "a mapping")
        return []
    file = _data_file(loading, section)
    if file is None or template is None or section.is_broken("where", "limit"):
        return []
    rows = _kept(loading, section, file)
    # A file without any row has no columns to tell; that it is empty has been said.
    known = not file.rows or _check_columns(loading, section, file, template)
    width = len(str(rows[-1].number)) if rows else 1
    stem = Path(file.source.display).name.rsplit(".", 1)[0]
    stimuli = []
    for row in rows if known else ():
        stimulus = _stimulus(loading, section, file, template, row, f"{stem}-{row.number:0{width}d}")
        if stimulus is not None:
            stimuli.append(stimulus)
    return stimuli


def _data_file(loading: Loading, section: Section) -> DataFile | None:
    node = section.written.get("file")
    if "file" not in section.values or not isinstance(node, ScalarNode) or section.is_broken("format", "delimiter"):
        return None
    place = section.place.key("file")
    path = loading.resolve(node, place)
    kind = section.get("format") or format_of(path.name)
    if kind is None:
        expected = f"a file name that ends in .jsonl, .ndjson, .csv, .yaml, .yml or .json, or format {any_of(FORMATS)}"
        wrong_value(node, place, loading.collector, expected)
        return None
    if kind != "csv" and "delimiter" in section.written:
        at, key = section.at("delimiter"), section.place.key("delimiter")
        loading.collector.add("ignored-key", at, key, hint=f"only CSV has one, and this is {kind}", key="delimiter")
    source = Source(loading.display(path), path, path.parent)
    if not paths.is_file(path):
        shown = node.written or node.text
        reason = "it is not a regular file" if paths.exists(path) else "no such file"
        loading.collector.add("file-not-found", node, place, file=shown, reason=reason)
        return None
    return read_rows(loading, source, kind, section.get("delimiter", ","), node, place)


def _kept(loading: Loading, section: Section, file: DataFile) -> list[Row]:
    wanted = section.get("where", {})
    rows = [row for row in file.rows if matches_filter(_texts(row.columns), wanted)]
    rows = rows[: section.get("limit")]
    node, place = section.at("file"), section.place.key("file")
    if not rows:
        hint = _missing_column(file, wanted) if file.rows else None
        loading.collector.add("empty-data", node, place, hint=hint, file=file.source.display)
    if len(rows) > MAX_ROWS:
        loading.collector.add("too-many-rows", node, place, file=file.source.display, count=len(rows))
        return []
    return rows


def _missing_column(file: DataFile, wanted: Mapping[str, object]) -> str | None:
    """What to say when `where` asks for a column that no row has."""
    name = next((name for name in wanted if name not in file.columns), None)
    if name is None:
        return None
    near = did_you_mean(name, file.columns)
    return f"no row has a column '{name}'{f', {near}' if near else ''}"


def _texts(columns: Mapping[str, Any]) -> dict[str, str | tuple[str, ...]]:
    """Columns as a filter compares them: scalars as text, lists by their elements."""
    texts: dict[str, str | tuple[str, ...]] = {}
    for name, value in columns.items():
        if isinstance(value, list):
            texts[name] = tuple(text for text in map(_text, value) if text is not None)
        elif (text := _text(value)) is not None:
            texts[name] = text
    return texts


def _text(value: object) -> str | None:
    """A scalar as text; None for lists and mappings."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return es_number(value) if isinstance(value, int | float) else None


def _check_columns(loading: Loading, section: Section, file: DataFile, template: Node) -> bool:
    """Report columns that no row has."""
    known = True
    for scalar, at in _placed(template, section.place.key("template")):
        for hole in scalar.holes:
            column = _column(hole)
            if column is not None and column[0] not in file.columns and not hole.escaped and hole.default is None:
                known = False
                loading.collector.add(
                    "unknown-column",
                    scalar,
                    at,
                    hint=did_you_mean(column[0], file.columns),
                    column=column[0],
                    file=file.source.display,
                )
    return known


def _placed(node: Node, place: Place) -> Iterator[tuple[ScalarNode, Place]]:
    """The values of a tree that are scalars, with their places."""
    if isinstance(node, ScalarNode):
        yield node, place
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.items):
            yield from _placed(item, place.item(index))
    elif isinstance(node, MappingNode):
        for key, value in node.entries:
            yield from _placed(value, place.key(key.text))


def _column(hole: Hole) -> list[str] | None:
    """The parts of a column's name; None for the number of the row."""
    return hole.name.split(".")[1:] if hole.name.startswith("row.") else None


_MISSING = object()


def _lookup(hole: Hole, row: Row) -> Any:
    parts = _column(hole)
    if parts is None:
        return row.number
    value: Any = row.columns
    for part in parts:
        if not isinstance(value, Mapping) or part not in value:
            return _MISSING
        value = value[part]
    return value


def _stimulus(
    loading: Loading, section: Section, file: DataFile, template: MappingNode, row: Row, default_name: str
) -> ReadStimulus | None:
    note = related(Node(file.source, row.line, 1), f"row {row.number}")
    place = section.place.key("template").noting(note)
    failed = False

    def report(code: str, node: Node, column: str) -> None:
        nonlocal failed
        failed = True
        at = next((at for scalar, at in _placed(template, place) if scalar is node), place)
        loading.collector.add(code, node, at, column=column, row=row.number, file=file.source.display)

    filled = _fill(template, row, report)
    if failed:
        return None
    assert isinstance(filled, MappingNode)
    stimulus = read_stimulus(loading, filled, place, default_name=default_name)
    if stimulus is not None:
        stimulus.source = {"file": file.source.display, "row": row.number}
    return stimulus


Report = Callable[[str, Node, str], None]


def _fill(node: Node, row: Row, report: Report) -> Node:
    """The tree with the values of a row; what has no placeholder of a row is shared."""
    if not node.holes_inside:
        return node
    if isinstance(node, ScalarNode):
        return _scalar(node, row, report)
    if isinstance(node, SequenceNode):
        items = [_fill(item, row, report) for item in node.items]
        sequence = SequenceNode(node.source, node.line, node.column, items)
        sequence.span = node.span
        return sequence
    assert isinstance(node, MappingNode)
    entries = [Entry(key, _fill(value, row, report)) for key, value in node.entries]
    mapping = MappingNode(node.source, node.line, node.column, entries)
    mapping.span = node.span
    return mapping


def _scalar(node: ScalarNode, row: Row, report: Report) -> Node:
    holes = [hole for hole in node.holes if is_row(hole)]
    whole = len(holes) == 1 and not node.style and node.tag is None and holes[0][:2] == (0, len(node.text))
    if whole and not holes[0].escaped:
        value = _lookup(holes[0], row)
        if value is not _MISSING:
            return _typed(node, value)
    pieces, end = [], 0
    for hole in holes:
        pieces += [node.text[end : hole.start], _piece(node, hole, row, report)]
        end = hole.end
    return _text_node(node, "".join((*pieces, node.text[end:])))


def _piece(node: ScalarNode, hole: Hole, row: Row, report: Report) -> str:
    if hole.escaped:
        return node.text[hole.start + 1 : hole.end]
    value = _lookup(hole, row)
    if value is _MISSING:
        if hole.default is None:
            report("missing-column-value", node, hole.name.removeprefix("row."))
        return hole.default or ""
    text = _text(value)
    if text is None:
        report("row-value-not-scalar", node, hole.name.removeprefix("row."))
    return text or ""


def _text_node(node: ScalarNode, text: str) -> ScalarNode:
    """A string at the place of a scalar; never resolved as a number again."""
    copy = ScalarNode(node.source, node.line, node.column, text, node.style or '"', "str")
    copy.original = node.original if node.original is not None else node.text
    return copy


def _typed(node: ScalarNode, value: Any) -> Node:
    """A value of a row as a tree at the place of its placeholder."""
    if isinstance(value, str):
        return _text_node(node, value)
    if isinstance(value, list):
        return SequenceNode(node.source, node.line, node.column, [_typed(node, item) for item in value])
    if isinstance(value, Mapping):
        entries = [
            Entry(ScalarNode(node.source, node.line, node.column, str(key), '"'), _typed(node, item))
            for key, item in value.items()
        ]
        return MappingNode(node.source, node.line, node.column, entries)
    text = "null" if value is None else _text(value)
    return ScalarNode(node.source, node.line, node.column, text or "")
