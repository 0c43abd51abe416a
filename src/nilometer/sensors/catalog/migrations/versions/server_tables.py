"""What a server keeps: options of queries, deliveries of their results, tokens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    options = sa.Column("options", sa.Text, nullable=False, server_default="{}")
    op.add_column("nilometer_queries", options)
    reference = sa.ForeignKey("nilometer_names.id", ondelete="CASCADE")
    op.create_table(
        "nilometer_deliveries",
        sa.Column("owner", sa.Integer, reference, primary_key=True, autoincrement=False),
        sa.Column("query", sa.String, nullable=False),
        sa.Column("unit", sa.String, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("error", sa.Text),
    )
    op.create_table(
        "nilometer_tokens",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("hash", sa.String, nullable=False, unique=True),
        sa.Column("scopes", sa.String, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.BigInteger),
    )
