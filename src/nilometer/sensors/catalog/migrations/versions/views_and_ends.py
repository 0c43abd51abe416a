"""Views, and the column of a stream that says until when a row counts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("nilometer_streams", sa.Column("end_column", sa.String))
    reference = sa.ForeignKey("nilometer_names.id", ondelete="CASCADE")
    op.create_table(
        "nilometer_views",
        sa.Column("owner", sa.Integer, reference, primary_key=True, autoincrement=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
    )
