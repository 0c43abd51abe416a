"""Readers are known from their logs alone."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.drop_table("nilometer_readers")
