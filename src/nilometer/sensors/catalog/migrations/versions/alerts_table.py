"""Alerts on streams and queries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    reference = sa.ForeignKey("nilometer_names.id", ondelete="CASCADE")
    op.create_table(
        "nilometer_alerts",
        sa.Column("owner", sa.Integer, reference, primary_key=True, autoincrement=False),
        sa.Column("source", sa.String, nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("silenced_until", sa.BigInteger),
        sa.Column("delivery", sa.String),
    )
