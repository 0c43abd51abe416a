"""The settings of a server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nilometer.sql.parse.query_text import MOST_CHARACTERS


@dataclass(frozen=True)
class ServerSettings:
    """Where it listens, and the limits of clients."""

    host: str = "127.0.0.1"
    port: int = 8642
    pg_port: int | None = None
    """The port for PostgreSQL's protocol; None: it is disabled."""
    certificate: Path | None = None
    key: Path | None = None
    allow_insecure: bool = False
    """Listen beyond this machine even without encryption."""
    allowed_hosts: tuple[str, ...] = ()
    """The names (in the header Host) by which it may be addressed; if empty: on loopback only those
    of this machine, elsewhere any."""
    max_body_bytes: int = 1 << 20
    max_statement_characters: int = MOST_CHARACTERS
    max_connections: int = 1000
    """Connections of every kind, all clients together."""
    max_connections_each: int = 200
    """Connections through PostgreSQL's protocol of one token."""
    max_followers: int = 500
    """Connections that follow results, all clients together."""
    max_followers_each: int = 200
    """Connections that follow results, of one token."""
    max_statements: int = 64
    """Statements that run or wait at one time."""
    max_statements_each: int = 24
    """Statements of one token that run or wait at one time."""
    max_requests_each: int = 500
    """Requests of one token that may wait for a thread, including those that only look."""
    max_queries: int = 2000
    """Named queries that run at one time."""
    max_queries_each: int = 1000
    """Named queries that one token may have created, unless it has the scope admin."""
    max_alerts: int = 1000
    """Alerts of all tokens; beyond these only those with the scope admin create more."""
    max_dashboards: int = 1000
    """As for alerts."""
    max_measured: int = 1000
    """/metrics reports at most this many queries, streams and deliveries each individually."""
    max_rows: int = 10_000
    """Rows of one answer or page."""
    max_answer_bytes: int = 64 << 20
    """Bytes of rows in the answer of a SELECT over tables."""
    in_process_bytes: int = 1 << 30
    """Queries about the past that read more bytes than these are read by Spark's tasks."""
    statement_seconds: float = 60.0
    """How long a SELECT over tables may run."""
    header_seconds: float = 10.0
    """How long the head of a request may take to arrive."""
    body_seconds: float = 30.0
    """How long the body of a request may take to arrive."""
    stop_seconds: float = 3.0
    """How long requests may continue after the server was asked to stop."""
    backups: tuple[str, ...] = ()
    """The destinations of backups: folders, or URIs such as s3://bucket/folder."""
    keep_backups: int | None = None
    """How many backups of a database are kept when another one is made; None: all."""
    temporary_after: float = 60.0
    """Seconds after which a temporary query without followers is dropped."""
