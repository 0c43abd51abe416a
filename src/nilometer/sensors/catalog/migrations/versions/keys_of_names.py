"""The keys by which files identify named things, so that names can change."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("nilometer_names", sa.Column("key", sa.String))
    op.execute("UPDATE nilometer_names SET key = folded")
    op.create_index("nilometer_names_key", "nilometer_names", ["key"], unique=True)
