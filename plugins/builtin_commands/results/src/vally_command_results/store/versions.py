"""Versions of a store: which one it has, which one this program writes, and bringing it up."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, insert, inspect, select

from vally import VallyError, __version__
from vally_command_results.store.schema import store_meta

VERSION_TABLE = "vally_schema_version"


def head_version() -> str:
    """The version that this program reads and writes."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    return config


def store_version(connection: Connection, shown: str) -> str | None:
    """The version of a store, None for an empty database; raises `VallyError` for what is no store of this program."""
    tables = set(inspect(connection).get_table_names())
    if not tables:
        return None
    if VERSION_TABLE not in tables:
        raise VallyError(f"'{shown}' is not a store of vally", where="--store", hints=["it was left as it is"])
    version = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if version is not None and version not in known:
        raise VallyError(
            f"store was written by vally {_writer(connection)}; upgrade this installation",
            where="--store",
            hints=[f"'{shown}' has version {version} of its tables, this is vally {__version__}"],
        )
    return version


def _writer(connection: Connection) -> str:
    if "store_meta" not in inspect(connection).get_table_names():
        return "(unknown)"
    return connection.scalar(select(store_meta.c.value).where(store_meta.c.key == "written_by")) or "(unknown)"


def upgrade(engine: Engine, version: str | None, file: Path | None) -> None:
    """Bring a store to the head version, after a backup beside an older SQLite file."""
    if version is not None and file is not None and version != head_version():
        _back_up(file, file.with_name(f"{file.name}.bak-{version}"))
    with engine.connect() as connection:
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        connection.commit()
    with engine.begin() as connection:
        if version is None:
            rows = {"data_version": "0", "created_by": __version__}
            connection.execute(insert(store_meta), [{"key": key, "value": value} for key, value in rows.items()])
        _note_writer(connection)


def _back_up(file: Path, copy: Path) -> None:
    # Not a copy of the file: what was committed last may still lie in the log beside it.
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)


def _note_writer(connection: Connection) -> None:
    updated = connection.execute(store_meta.update().where(store_meta.c.key == "written_by").values(value=__version__))
    if not updated.rowcount:
        connection.execute(insert(store_meta).values(key="written_by", value=__version__))
