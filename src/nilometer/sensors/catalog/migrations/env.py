"""What Alembic runs: the steps that are missing, in the transaction that it is given."""

from __future__ import annotations

from alembic import context

from nilometer.sensors.catalog.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
