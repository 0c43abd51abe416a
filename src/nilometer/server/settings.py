"""How a server is set up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nilometer.sql.parse.query_text import MOST_CHARACTERS


@dataclass(frozen=True)
class ServerSettings:
    """Where it listens, and what clients may take."""

    host: str = "127.0.0.1"
    port: int = 8642
    pg_port: int | None = None
    """Where PostgreSQL's protocol is spoken; None: nowhere."""
    certificate: Path | None = None
    key: Path | None = None
    allow_insecure: bool = False
    """Listen beyond this machine although what is sent is not encrypted."""
    allowed_hosts: tuple[str, ...] = ()
    """By which names (in the header Host) it may be called; none: on loopback by those of this
    machine only, elsewhere by any."""
    max_body_bytes: int = 1 << 20
    max_statement_characters: int = MOST_CHARACTERS
    max_connections: int = 1000
    """Connections of every kind, all clients together."""
    max_connections_each: int = 200
    """Of those by PostgreSQL's protocol, by one token."""
    max_followers: int = 500
    """Connections that follow results, all clients together."""
    max_followers_each: int = 200
    """Of these, by one token."""
    max_statements: int = 64
    """Statements that run or wait at one time."""
    max_statements_each: int = 24
    """Of these, by one token."""
    max_requests_each: int = 500
    """Requests of one token that may wait for a thread, of those that look as well."""
    max_queries: int = 2000
    """Named queries that run at one time."""
    max_queries_each: int = 1000
    """Named queries that one token may have made, unless it has the scope admin."""
    max_alerts: int = 1000
    """Alerts of all tokens; beyond these only those with the scope admin make more."""
    max_dashboards: int = 1000
    """As for alerts."""
    max_measured: int = 1000
    """Of so many queries, streams and deliveries each, /metrics tells one by one."""
    max_rows: int = 10_000
    """Rows that one answer or page holds."""
    max_answer_bytes: int = 64 << 20
    """Bytes of the rows that a SELECT over tables may answer with."""
    in_process_bytes: int = 1 << 30
    """What a question about the past reads beyond these is read by Spark's tasks."""
    statement_seconds: float = 60.0
    """How long a SELECT over tables may run."""
    header_seconds: float = 10.0
    """Within which time the head of a request has to arrive."""
    body_seconds: float = 30.0
    """Within which time the body of a request has to arrive."""
    stop_seconds: float = 3.0
    """How long requests may go on after the server was told to stop."""
    backups: tuple[str, ...] = ()
    """Where backups may go: folders, or URIs such as s3://bucket/folder."""
    keep_backups: int | None = None
    """So many are left of a database when another one was made; None: all of them."""
    temporary_after: float = 60.0
    """Seconds after which a temporary query goes that nobody follows."""
