"""Alembic's entry point: runs on the connection that brain.migrate hands over, which holds the migration lock."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, transaction_per_migration=False)
context.run_migrations()
