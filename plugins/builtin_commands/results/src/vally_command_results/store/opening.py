"""Opening a store: a SQLite file, a database by its URL, or one in memory."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event, make_url, select, text, update
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError
from sqlalchemy.pool import StaticPool

from vally import VallyError, print_warning
from vally_command_results.store.schema import store_meta
from vally_command_results.store.versions import head_version, store_version, upgrade

BUSY_MS = 10_000
DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}


@dataclass(frozen=True, slots=True)
class Store:
    """An open store; `shown` is how messages call it, without a password. Close it after use."""

    engine: Engine
    shown: str
    lock: AbstractContextManager[object] = field(default_factory=nullcontext)
    """Held while one thread uses a store in memory, which has one connection only."""

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a SQLite database."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the store."""
        with self.lock, self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self, key: str) -> Iterator[Connection]:
        """A transaction that no other writer of the same key runs beside; it is undone when the block raises."""
        with self.lock, self.engine.connect() as connection:
            try:
                if self.is_sqlite:
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                else:
                    connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:key, 0))"), {"key": key})
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def data_version(self, connection: Connection) -> int:
        """How often something was committed."""
        return int(connection.scalar(select(store_meta.c.value).where(store_meta.c.key == "data_version")) or 0)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def count_change(connection: Connection) -> None:
    """Note in a transaction that it changes the store."""
    row = store_meta.c
    current = connection.scalar(select(row.value).where(row.key == "data_version").with_for_update())
    connection.execute(update(store_meta).where(row.key == "data_version").values(value=str(int(current or 0) + 1)))


def open_memory() -> Store:
    """An empty store in memory, shared by all threads."""
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    _listen(engine, wal=False)
    upgrade(engine, None, None)
    return Store(engine, "memory", threading.RLock())


def open_store(words: str, base: Path, *, create: bool) -> Store:
    """Open a store by path or URL, bringing an older one up; raises `VallyError` when it cannot be used.

    `create` makes a missing one. An older file that may not be written is refused.
    """
    engine, file, shown = _engine(words, base)
    is_new = file is not None and not file.exists()
    if is_new and not create:
        raise VallyError(f"store '{shown}' does not exist", where="--store", hints=["make one with `vally ingest`"])
    try:
        _open(engine, file, shown, create=create)
    except BaseException as error:
        engine.dispose()
        if is_new and file is not None:
            _remove_empty(file)
        if isinstance(error, (DBAPIError, sqlite3.Error)):
            raise VallyError(f"cannot open store '{shown}': {_reason(error)}", where="--store") from error
        raise
    return Store(engine, shown)


def _remove_empty(file: Path) -> None:
    """Remove a new file in which nothing could be written: it would look like a store."""
    with suppress(OSError):
        if file.stat().st_size == 0:
            file.unlink()


def _open(engine: Engine, file: Path | None, shown: str, *, create: bool) -> None:
    with engine.connect() as connection:
        version = store_version(connection, shown)
    if version == head_version():
        return
    if version is None and not create:
        raise VallyError(f"'{shown}' is an empty database", where="--store", hints=["fill it with `vally ingest`"])
    if version is not None and file is not None and not _may_be_written(file):
        hints = [f"run: vally ingest --store {shown} <DIRECTORY>"]
        raise VallyError(f"store '{shown}' is of an older version", where="--store", hints=hints)
    if version is not None and file is None:
        print_warning(f"store '{shown}' is being upgraded; no backup is made of it")
    upgrade(engine, version, file)


def _may_be_written(file: Path) -> bool:
    """Whether a file and the backup beside it may be written."""
    return os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)


def _engine(words: str, base: Path) -> tuple[Engine, Path | None, str]:
    if "://" not in words:
        path = (base / words).resolve()
        if not path.parent.is_dir():
            raise VallyError(f"there is no directory '{path.parent}'", where="--store")
        if path.exists() and not _may_be_sqlite(path):
            raise VallyError(f"'{words}' is not a store of vally", where="--store", hints=["it was left as it is"])
        return _sqlite(path), path, words
    try:
        url = make_url(words)
        shown = url.render_as_string(hide_password=True)
        if url.get_backend_name() == "sqlite":
            if not url.database:
                raise VallyError("a SQLite URL needs a file: sqlite:///results.db", where="--store")
            return _engine(url.database, base)
        url = url.set(drivername=DRIVERS.get(url.drivername, url.drivername))
        if url.get_backend_name() != "postgresql":
            raise VallyError(f"'{url.drivername}' is not supported; use SQLite or PostgreSQL", where="--store")
        return create_engine(url, pool_pre_ping=True), None, shown
    except (ArgumentError, NoSuchModuleError) as error:
        raise VallyError(
            "is not a path or a database URL", where="--store", hints=["example: postgresql+psycopg://user@host/db"]
        ) from error
    except ModuleNotFoundError as error:
        raise VallyError(
            "the driver for PostgreSQL is not installed", where="--store", hints=["pip install 'vally[postgres]'"]
        ) from error


def _may_be_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise VallyError(f"cannot read '{path}': {error.strerror or error}", where="--store") from error
    return head in (b"", b"SQLite format 3\0")


def _sqlite(path: Path) -> Engine:
    engine = create_engine(f"sqlite:///{path.as_posix()}", connect_args={"timeout": BUSY_MS / 1000})
    _listen(engine, wal=True)
    return engine


def _listen(engine: Engine, *, wal: bool) -> None:
    @event.listens_for(engine, "connect")
    def prepare(connection: object, _: object) -> None:
        cursor = connection.cursor()  # type: ignore[attr-defined]  # a connection of sqlite3
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        if wal:
            cursor.execute("PRAGMA journal_mode=WAL")
            cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.close()


def _reason(error: DBAPIError | sqlite3.Error) -> str:
    told = error if isinstance(error, sqlite3.Error) else error.orig
    kind = "" if isinstance(error, (OperationalError, sqlite3.OperationalError)) else f"{type(told).__name__}: "
    return f"{kind}{str(told).strip().splitlines()[0]}"
