"""The tables of the catalog. A change here needs a new step in migrations/versions."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

VERSION_TABLE: Final = "nilometer_version"
"""Where Alembic keeps the revision; the names let the catalog share a PostgreSQL database."""

metadata: Final = MetaData()

counters: Final = Table(
    "nilometer_counters",
    metadata,
    Column("name", String, primary_key=True),
    Column("value", BigInteger, nullable=False),
)
CHANGES: Final = "changes"
"""Counts changes of the catalog. Every change raises this first, so changes never overlap."""
VERSIONS: Final = "versions"
"""The last version given to a sensor of any table: none is ever given twice."""

names: Final = Table(
    "nilometer_names",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("folded", String, nullable=False, unique=True),
    Column("name", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("key", String),
    Index("nilometer_names_key", "key", unique=True),
)
"""Files identify a named thing by its key, which stays when the name changes."""


def _owner(*, is_key: bool = False) -> Column[int]:
    """The owner of the row, which is deleted when the owner's name is dropped."""
    reference = ForeignKey("nilometer_names.id", ondelete="CASCADE")
    return Column(
        "owner", Integer, reference, primary_key=is_key, nullable=False, autoincrement=False
    )


streams: Final = Table(
    "nilometer_streams",
    metadata,
    _owner(is_key=True),
    Column("readings", Text, nullable=False),
    Column("stream_type", String, nullable=False),
    Column("options", Text, nullable=False),
    Column("time_column", String),
    Column("end_column", String),
    Column("lateness", BigInteger, nullable=False),
    Column("idle", BigInteger),
    Column("every", BigInteger),
    Column("history", BigInteger, nullable=False),
    Column("static", Text),
    Column("place", Integer, nullable=False),
    Column("stream_column", String),
)

sensors: Final = Table(
    "nilometer_sensors",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    _owner(),
    Column("number", Integer, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("address", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("deleted", BigInteger),
    Index("nilometer_sensors_of", "owner", "deleted"),
)

tables: Final = Table(
    "nilometer_tables",
    metadata,
    _owner(is_key=True),
    Column("columns", Text, nullable=False),
)

table_rows: Final = Table(
    "nilometer_table_rows",
    metadata,
    Column("id", Integer, primary_key=True),
    _owner(),
    Column("row_count", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Index("nilometer_table_rows_of", "owner"),
)

queries: Final = Table(
    "nilometer_queries",
    metadata,
    _owner(is_key=True),
    Column("text", Text, nullable=False),
    Column("kind", String, nullable=False),
    Column("state", String, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("error", Text),
    Column("options", Text, nullable=False, server_default="{}"),
)

views: Final = Table(
    "nilometer_views",
    metadata,
    _owner(is_key=True),
    Column("text", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
)

deliveries: Final = Table(
    "nilometer_deliveries",
    metadata,
    _owner(is_key=True),
    Column("query", String, nullable=False),
    Column("unit", String, nullable=False),
    Column("options", Text, nullable=False),
    Column("state", String, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("error", Text),
)

alerts: Final = Table(
    "nilometer_alerts",
    metadata,
    _owner(is_key=True),
    Column("source", String, nullable=False),
    Column("definition", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("silenced_until", BigInteger),
    Column("delivery", String),
)

tokens: Final = Table(
    "nilometer_tokens",
    metadata,
    Column("name", String, primary_key=True),
    Column("hash", String, nullable=False, unique=True),
    Column("scopes", String, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger),
)
"""Who may use the server; only a hash of a token is stored."""

dashboards: Final = Table(
    "nilometer_dashboards",
    metadata,
    Column("folded", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("title", Text, nullable=False),
    Column("panels", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),
)
"""What the console shows; no statement can name them, so they have their own names."""

lease: Final = Table(
    "nilometer_lease",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("holder", String, nullable=False),
    Column("told", String, nullable=False),
    Column("until", BigInteger, nullable=False),
)
"""The holder of a catalog that several machines can reach; there is one row, or none."""
