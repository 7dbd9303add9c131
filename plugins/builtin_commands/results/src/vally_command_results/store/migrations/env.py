"""How Alembic runs the versions: over a connection that the program opened, one transaction for each version."""

from __future__ import annotations

from alembic import context

from vally_command_results.store.schema import metadata
from vally_command_results.store.versions import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transaction_per_migration=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
