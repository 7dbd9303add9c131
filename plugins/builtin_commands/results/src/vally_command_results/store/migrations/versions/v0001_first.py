"""The first tables.

A second version that changes them has to freeze them here, as they are now, and to change what this one made.
"""

from __future__ import annotations

from alembic import op

from vally_command_results.store.schema import metadata

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make all tables and indexes."""
    metadata.create_all(op.get_bind(), checkfirst=False)
