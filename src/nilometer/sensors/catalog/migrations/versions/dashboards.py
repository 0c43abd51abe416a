"""Dashboards of the console."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "nilometer_dashboards",
        sa.Column("folded", sa.String, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("panels", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("changed", sa.BigInteger, nullable=False),
    )
