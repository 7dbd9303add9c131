"""Column types that behave alike in SQLite and PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, DateTime, Float, Integer, String, Text, TypeDecorator
from sqlalchemy.dialects.postgresql import JSONB, TEXT
from sqlalchemy.engine import Dialect
from sqlalchemy.types import JSON, TypeEngine

Str = Text().with_variant(TEXT(collation="C"), "postgresql")
"""Text that sorts by code point everywhere."""
Int = BigInteger()
Real = Float(53)
Key = BigInteger().with_variant(Integer(), "sqlite")
"""Numbers that the database gives; SQLite gives them to plain integers only."""


class Timestamp(TypeDecorator[str]):
    """A UTC time with milliseconds, in Python and in SQLite the text `2026-07-24T01:00:00.000Z`."""

    impl = String(24)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """A real time where the database has one that keeps the zone."""
        return dialect.type_descriptor(DateTime(timezone=True) if dialect.name == "postgresql" else String(24))

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        """Text to what the driver wants."""
        return value if value is None or dialect.name != "postgresql" else datetime.fromisoformat(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        """What the driver gives to text."""
        if value is None or isinstance(value, str):
            return value
        utc: datetime = value.astimezone(UTC)
        return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"


class OrderedJson(TypeDecorator[Any]):
    """A JSON value whose mappings come back sorted by key: PostgreSQL keeps no order, so no order is kept anywhere."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The binary form where there is one."""
        binary = dialect.name == "postgresql"
        return dialect.type_descriptor(JSONB(none_as_null=True) if binary else JSON(none_as_null=True))

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Sort what was read."""
        return _sorted(value)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


Json = OrderedJson()
