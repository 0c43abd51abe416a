"""The holder of a shared catalog: one database at a time, for a limited time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "nilometer_lease",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("holder", sa.String, nullable=False),
        sa.Column("told", sa.String, nullable=False),
        sa.Column("until", sa.BigInteger, nullable=False),
    )
