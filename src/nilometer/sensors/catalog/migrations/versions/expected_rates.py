"""The expected interval of a stream's sensors."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("nilometer_streams", sa.Column("every", sa.BigInteger))
