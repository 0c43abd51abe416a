"""All tables of the first release; its revision follows those that were never released."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = None


def upgrade() -> None:
    _create_names()
    _create_streams()
    _create_tables()
    _create_queries()
    _create_watchers()
    _create_server_tables()


def _create_names() -> None:
    counters = op.create_table(
        "nilometer_counters",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("value", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(counters, [{"name": name, "value": 0} for name in ("changes", "versions")])
    op.create_table(
        "nilometer_names",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("folded", sa.String, nullable=False, unique=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("key", sa.String),
    )
    op.create_index("nilometer_names_key", "nilometer_names", ["key"], unique=True)


def _owner(*, is_key: bool = False) -> sa.Column[int]:
    reference = sa.ForeignKey("nilometer_names.id", ondelete="CASCADE")
    return sa.Column(
        "owner", sa.Integer, reference, primary_key=is_key, nullable=False, autoincrement=False
    )


def _create_streams() -> None:
    op.create_table(
        "nilometer_streams",
        _owner(is_key=True),
        sa.Column("readings", sa.Text, nullable=False),
        sa.Column("stream_type", sa.String, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("time_column", sa.String),
        sa.Column("end_column", sa.String),
        sa.Column("lateness", sa.BigInteger, nullable=False),
        sa.Column("idle", sa.BigInteger),
        sa.Column("every", sa.BigInteger),
        sa.Column("history", sa.BigInteger, nullable=False),
        sa.Column("static", sa.Text),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("stream_column", sa.String),
    )
    op.create_table(
        "nilometer_sensors",
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        _owner(),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("deleted", sa.BigInteger),
    )
    op.create_index("nilometer_sensors_of", "nilometer_sensors", ["owner", "deleted"])


def _create_tables() -> None:
    op.create_table(
        "nilometer_tables",
        _owner(is_key=True),
        sa.Column("columns", sa.Text, nullable=False),
    )
    op.create_table(
        "nilometer_table_rows",
        sa.Column("id", sa.Integer, primary_key=True),
        _owner(),
        sa.Column("row_count", sa.BigInteger, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_index("nilometer_table_rows_of", "nilometer_table_rows", ["owner"])


def _create_queries() -> None:
    op.create_table(
        "nilometer_queries",
        _owner(is_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("options", sa.Text, nullable=False, server_default="{}"),
    )
    op.create_table(
        "nilometer_views",
        _owner(is_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
    )


def _create_watchers() -> None:
    """What reads the results of queries."""
    op.create_table(
        "nilometer_deliveries",
        _owner(is_key=True),
        sa.Column("query", sa.String, nullable=False),
        sa.Column("unit", sa.String, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("error", sa.Text),
    )
    op.create_table(
        "nilometer_alerts",
        _owner(is_key=True),
        sa.Column("source", sa.String, nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("silenced_until", sa.BigInteger),
        sa.Column("delivery", sa.String),
    )


def _create_server_tables() -> None:
    op.create_table(
        "nilometer_tokens",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("hash", sa.String, nullable=False, unique=True),
        sa.Column("scopes", sa.String, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.BigInteger),
    )
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
    op.create_table(
        "nilometer_lease",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("holder", sa.String, nullable=False),
        sa.Column("told", sa.String, nullable=False),
        sa.Column("until", sa.BigInteger, nullable=False),
    )
