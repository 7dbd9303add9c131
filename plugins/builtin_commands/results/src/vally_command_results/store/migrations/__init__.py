"""The versions of the tables, for Alembic."""
