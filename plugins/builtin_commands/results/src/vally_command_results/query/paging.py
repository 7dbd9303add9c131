"""Pages of ordered rows: the cursor holds the last row's place, so new rows do not shift pages."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, false, func, or_

from vally_command_results.query.errors import QueryError

VERSION = 1
DEFAULT_LIMIT = 100
MAX_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class SortKey:
    """One column of an order; rows without a value come last."""

    column: ColumnElement[Any]
    descending: bool = False


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which page: the opaque cursor of the page before, and how many rows."""

    cursor: str | None = None
    limit: int = DEFAULT_LIMIT


def page_of(
    connection: Connection,
    query: Select[Any],
    order: Sequence[SortKey],
    request: PageRequest,
    *,
    context: Mapping[str, Any],
    make: Callable[[Any], dict[str, Any]],
) -> dict[str, Any]:
    """`items` and `page` of a query. The last key of `order` must be unique; `context` are filters and sort.

    Raises `QueryError` for a cursor that was made by another question.
    """
    total = connection.scalar(query.with_only_columns(func.count(), maintain_column_froms=True).order_by(None)) or 0
    fingerprint = _fingerprint(context)
    shown = query.add_columns(*(key.column.label(f"sort_{place}") for place, key in enumerate(order)))
    if request.cursor is not None:
        shown = shown.where(_after(order, _place(request.cursor, fingerprint, len(order))))
    for key in order:
        ordered = key.column.desc() if key.descending else key.column.asc()
        shown = shown.order_by(ordered.nulls_last())
    rows = connection.execute(shown.limit(request.limit + 1)).all()
    has_more = len(rows) > request.limit
    kept = rows[: request.limit]
    cursor = _cursor(kept[-1], len(order), fingerprint) if has_more else None
    return {"items": [make(row) for row in kept], "page": page_document(cursor, request.limit, has_more, total)}


def page_document(cursor: str | None, limit: int, has_more: bool, total: int) -> dict[str, Any]:
    """The `page` of an answer."""
    return {"nextCursor": cursor, "limit": limit, "hasMore": has_more, "total": total}


def _after(order: Sequence[SortKey], place: Sequence[Any]) -> ColumnElement[bool]:
    """Rows behind a place: equal in the first keys and behind in the next."""
    alternatives: list[ColumnElement[bool]] = []
    equal: list[ColumnElement[bool]] = []
    for key, value in zip(order, place, strict=True):
        if value is None:
            equal.append(key.column.is_(None))
            continue
        behind = key.column < value if key.descending else key.column > value
        alternatives.append(and_(*equal, or_(behind, key.column.is_(None))))
        equal.append(key.column == value)
    return or_(*alternatives) if alternatives else false()


def slice_of(items: Sequence[Any], request: PageRequest, context: Mapping[str, Any]) -> dict[str, Any]:
    """`items` and `page` of a list that is at hand."""
    fingerprint = _fingerprint(context)
    start = 0 if request.cursor is None else _place(request.cursor, fingerprint, 1)[0]
    if not isinstance(start, int) or start < 0:
        raise _bad_cursor()
    end = start + request.limit
    has_more = end < len(items)
    cursor = _encode([end], fingerprint) if has_more else None
    return {"items": list(items[start:end]), "page": page_document(cursor, request.limit, has_more, len(items))}


def _fingerprint(context: Mapping[str, Any]) -> str:
    text = json.dumps(context, sort_keys=True, default=list)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def _cursor(row: Any, keys: int, fingerprint: str) -> str:
    return _encode([getattr(row, f"sort_{place}") for place in range(keys)], fingerprint)


def _encode(place: Sequence[Any], fingerprint: str) -> str:
    text = json.dumps([VERSION, fingerprint, *place], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _place(cursor: str, fingerprint: str, keys: int) -> list[Any]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        value = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, RecursionError) as error:
        raise _bad_cursor() from error
    if not isinstance(value, list) or value[:2] != [VERSION, fingerprint] or len(value) != keys + 2:
        raise _bad_cursor()
    if not all(item is None or isinstance(item, (str, int, float)) for item in value[2:]):
        raise _bad_cursor()
    return value[2:]


def _bad_cursor() -> QueryError:
    return QueryError("invalid_cursor", 400, "cursor: not made by this endpoint with these filters")
