"""PostgreSQL's protocol, spoken by real clients: psql, psycopg, SQLAlchemy, pandas."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import psycopg
import pyarrow as pa
import pytest
import sqlalchemy as sa

from nilometer.log.layout import TIMESTAMP, LogLayout
from nilometer.log.options import LogOptions
from nilometer.log.writer import LogWriter
from nilometer.server.pg import wire
from nilometer.server.pg.listener import PgListener
from nilometer.server.settings import ServerSettings
from tests.patience import LONG
from tests.pg_at_work import listening
from tests.served import Served, served

BEGIN = datetime(2026, 1, 31, 12, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("_time", TIMESTAMP),
        ("k", pa.int64()),
        ("v", pa.float64()),
        ("name", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("is_on", pa.bool_()),
        ("price", pa.decimal128(20, 4)),
        ("day", pa.date32()),
        ("raw", pa.binary()),
        ("more", pa.struct([("a", pa.int32())])),
    ]
)
ROWS: list[dict[str, Any]] = [
    {
        "_time": BEGIN + timedelta(seconds=n),
        "k": n % 5,
        "v": None if n == 7 else n / 3,
        "name": ["plain", 'a "quote"', "tab\tline\nback\\", "", None][n % 5],
        "tags": [["a", 'b"c', "NULL", "d,e", ""], [], None][n % 3],
        "is_on": n % 2 == 0,
        "price": Decimal(n * 1234567).scaleb(-4),
        "day": date(2026, 1, 1) + timedelta(days=n),
        "raw": bytes(range(n)),
        "more": {"a": n},
    }
    for n in range(100)
]
DECLARED = "CREATE STREAM climate (k BIGINT, v DOUBLE) FROM synthetic WITH (rate = 1)"


@dataclass
class PgServer:
    """A server that speaks the protocol, in a thread."""

    served: Served
    port: int

    def dsn(self, scope: str = "read", **more: object) -> str:
        secret = self.served.secrets.get(scope, scope)
        rest = " ".join(f"{name}={value}" for name, value in more.items())
        return f"host=127.0.0.1 port={self.port} user=x dbname=nilometer password={secret} {rest}"

    def connect(self, scope: str = "read", **more: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(self.dsn(scope), autocommit=True, **more)

    def psql(self, *given: str, scope: str = "read") -> subprocess.CompletedProcess[str]:
        psql = shutil.which("psql")
        if psql is None:
            pytest.skip("psql is not installed")
        secret = self.served.secrets.get(scope, scope)
        return subprocess.run(
            [psql, "-X", "-h", "127.0.0.1", "-p", str(self.port), "-U", "x", "nilometer", *given],
            env={**os.environ, "PGPASSWORD": secret, "PAGER": ""},
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PgServer]:
    folder = tmp_path_factory.mktemp("pg")
    with served(folder, ServerSettings(statement_seconds=30)) as one:
        assert one.sql(DECLARED).status_code == 200
        one.sql("CREATE TABLE places (k BIGINT, place STRING)")
        one.sql("INSERT INTO places VALUES (0, 'hall'), (1, 'roof')")
        writer = LogWriter.open(
            str(one.database.logs / "climate"),
            LogLayout(SCHEMA, "_time"),
            LogOptions(history=1 << 60),
        )
        writer.append(pa.RecordBatch.from_pylist(ROWS, schema=SCHEMA))
        writer.close()
        with listening(one.service, one.tokens) as port:
            yield PgServer(one, port)


def expected(name: str) -> list[Any]:
    return [row[name] for row in ROWS]


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("name", [one for one in SCHEMA.names if one not in ("more", "_time")])
def test_values_of_all_types(server: PgServer, name: str, binary: bool) -> None:
    with server.connect() as connection, connection.cursor(binary=binary) as cursor:
        cursor.execute(f'SELECT "{name}" FROM climate ORDER BY _time')
        assert [row[0] for row in cursor.fetchall()] == expected(name)


@pytest.mark.parametrize("binary", [False, True])
def test_instants_and_structs(server: PgServer, binary: bool) -> None:
    with server.connect() as connection, connection.cursor(binary=binary) as cursor:
        cursor.execute("SELECT _time, more FROM climate ORDER BY _time")
        rows = cursor.fetchall()
    assert [row[0].astimezone(UTC) for row in rows] == expected("_time")
    assert [row[1] for row in rows] == expected("more")


def test_parameters_of_all_types(server: PgServer) -> None:
    conditions = {
        "k": 3,
        "v": 2.0,
        "name": 'a "quote"',
        "is_on": True,
        "price": Decimal("123.4567"),
        "day": date(2026, 1, 5),
        "_time": BEGIN + timedelta(seconds=9),
    }
    with server.connect() as connection:
        for name, value in conditions.items():
            sql = f'SELECT COUNT(*) FROM climate WHERE "{name}" <= %s'
            wanted = sum(row[name] is not None and row[name] <= value for row in ROWS)
            for form in ("%s", "%b", "%t"):
                answer = connection.execute(sql.replace("%s", form), [value]).fetchone()
                assert answer == (wanted,), (name, form)
        assert connection.execute("SELECT %s::text, %s::int", [None, 7]).fetchone() == (None, 7)
        hostile = "'; DROP TABLE climate; --"
        assert connection.execute("SELECT %s", [hostile]).fetchone() == (hostile,)


def test_hundreds_of_short_queries(server: PgServer) -> None:
    with server.connect(prepare_threshold=2) as connection:
        for n in range(50):
            assert connection.execute("SELECT %s + 1", [n]).fetchone() == (n + 1,)
        with connection.pipeline():
            asked = [connection.execute("SELECT %s + 1", [n]) for n in range(250)]
            assert [one.fetchone() for one in asked] == [(n + 1,) for n in range(250)]


def test_psql_describes(server: PgServer) -> None:
    listed = server.psql("-c", r"\dt").stdout
    assert " climate " in listed
    assert " places " in listed
    described = server.psql("-c", r"\d climate")
    assert described.stderr == ""
    lines = [[part.strip() for part in line.split("|")] for line in described.stdout.splitlines()]
    kinds = {line[0]: line[1] for line in lines if len(line) > 2}
    assert kinds["_time"] == "timestamp with time zone"
    assert kinds["v"] == "double precision"
    assert kinds["tags"] == "text[]"
    for command in (r"\d", r"\d+", r"\dn", r"\l", r"\du", r"\dv", r"\di", r"\df", r"\conninfo"):
        assert "ERROR" not in server.psql("-c", command).stderr, command


def test_psql_asks(server: PgServer) -> None:
    asked = server.psql("-At", "-c", "SELECT k, COUNT(*) FROM climate GROUP BY k ORDER BY k")
    assert asked.stdout.split() == [f"{k}|20" for k in range(5)]
    both = server.psql("-At", "-c", "SELECT 1; SELECT 2")
    assert both.stdout.split() == ["1", "2"]
    joined = server.psql(
        "-At", "-c", "SELECT place, MAX(v) FROM climate JOIN places USING (k) GROUP BY 1 ORDER BY 1"
    )
    assert joined.stdout.split() == ["hall|31.666666666666668", "roof|32"]
    wrong = server.psql("-c", "SELECT *\nFROM climat")
    assert "did you mean climate?" in wrong.stderr
    assert "LINE 2" in wrong.stderr
    assert wrong.returncode == 1
    made = server.psql("-c", "CREATE TABLE t2 (a INT)", scope="write")
    assert made.stdout.startswith("CREATE TABLE")
    refused = server.psql("-c", "DROP TABLE t2")
    assert "write" in refused.stderr


def test_a_wrong_token_is_refused(server: PgServer) -> None:
    assert "the token is not valid" in server.psql("-c", "SELECT 1", scope="nm_wrong").stderr
    with pytest.raises(psycopg.OperationalError, match="token"):
        server.connect("nm_" + "x" * 40)


def test_copy(server: PgServer) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        with cursor.copy("COPY (SELECT k, name FROM climate ORDER BY _time) TO STDOUT") as copy:
            rows = list(copy.rows())
        assert rows == [(str(row["k"]), row["name"]) for row in ROWS]
    csv = server.psql(
        "-c",
        r"\copy (SELECT k, name FROM climate ORDER BY _time LIMIT 5) TO STDOUT WITH CSV HEADER",
    )
    assert csv.stdout.startswith('k,name\n0,plain\n1,"a ""quote"""\n')


def test_sqlalchemy_and_pandas(server: PgServer) -> None:
    engine = sa.create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(server.dsn()),
    )
    with closing(engine.raw_connection()):
        pass
    with engine.connect() as connection:
        assert (
            connection.execute(
                sa.text("SELECT COUNT(*) FROM climate WHERE k = :k"), {"k": 2}
            ).scalar()
            == 20
        )
        table = pd.read_sql("SELECT _time, v FROM climate ORDER BY _time", connection)
    assert len(table) == 100
    assert str(table.dtypes["v"]) == "float64"
    inspector = sa.inspect(engine)
    assert set(inspector.get_table_names()) >= {"climate", "places"}
    columns = {one["name"]: str(one["type"]) for one in inspector.get_columns("climate")}
    assert columns["v"].startswith("DOUBLE PRECISION")
    assert columns["_time"].startswith("TIMESTAMP")
    engine.dispose()


def test_a_statement_can_be_cancelled(server: PgServer) -> None:
    with server.connect() as connection:
        timer = threading.Timer(0.5, connection.cancel_safe)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("SELECT COUNT(*) FROM climate a, range(100000000) r, range(1000) s")
        timer.join()
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_rows_come_in_parts(server: PgServer) -> None:
    with psycopg.connect(server.dsn()) as connection, connection.cursor() as cursor:
        rows = list(cursor.stream("SELECT k FROM climate ORDER BY _time"))
    assert [row[0] for row in rows] == expected("k")


def test_errors_leave_the_connection_usable(server: PgServer) -> None:
    with server.connect() as connection:
        for wrong in (
            "SELECT * FROM nobody",
            "SELECT no_such FROM climate",
            "SELEC 1",
            "SELECT * FROM read_text('/etc/passwd')",
            "SELECT pg_sleep(10)",
            "SELECT pg_read_file('/etc/passwd')",
            "COPY climate FROM STDIN",
            "COPY (SELECT 1) TO '/tmp/x'",
            "SELECT k FROM climate [RANGE 1 SECOND]",
            "CREATE TABLE x AS SELECT 1",
            "DROP STREAM climate",
        ):
            with pytest.raises(psycopg.Error):
                connection.execute(wrong)
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_transactions_and_settings_are_taken(server: PgServer) -> None:
    with psycopg.connect(server.dsn()) as connection:
        connection.execute("SET application_name = 'x'")
        assert connection.execute("SHOW server_version").fetchone() == ("16.0",)
        assert connection.execute("SELECT current_schema(), version()").fetchone() is not None
        connection.commit()
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT nothing")
        connection.rollback()
        assert connection.execute("SELECT 2").fetchone() == (2,)


def expanded(sql: str) -> str:
    """What Grafana makes of its macros and variables before it asks."""
    begin, end = BEGIN.isoformat(), (BEGIN + timedelta(minutes=1)).isoformat()
    sql = sql.replace("$stream", "climate").replace("$column", "v").replace("$__interval", "10s")
    sql = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 BETWEEN '{begin}' AND '{end}'", sql)
    group = r'floor(extract(epoch from \1)/10)*10 AS "time"'
    return re.sub(r"\$__timeGroupAlias\((\w+), 10s\)", group, sql)


def test_the_dashboard_of_grafana_is_answered(server: PgServer) -> None:
    folder = Path(__file__).parents[2] / "deploy" / "grafana"
    dashboard = json.loads((folder / "stream.json").read_text())
    for name in ("datasource.yaml", "dashboards.yaml"):
        assert (folder / name).read_text().count("apiVersion: 1") == 1
    with server.connect() as connection:

        def ask(sql: str) -> list[tuple[Any, ...]]:
            return connection.execute(expanded(sql)).fetchall()  # type: ignore[arg-type]

        streams, columns = (one["query"] for one in dashboard["templating"]["list"])
        assert ("climate",) in ask(streams)
        assert ("v",) in ask(columns)
        means, rows, last, bars, latest = (
            ask(panel["targets"][0]["rawSql"]) for panel in dashboard["panels"]
        )
        wanted = [row["v"] for row in ROWS[:10] if row["v"] is not None]
        assert means[0][0] == BEGIN.timestamp()
        assert means[0][1] == pytest.approx(sum(wanted) / len(wanted))
        assert rows == [(61,)]
        assert last[0][0].astimezone(UTC) == BEGIN + timedelta(seconds=60)
        assert [count for _, count in bars] == [10] * 6 + [1]
        assert len(latest) == 61


HOSTILE = (
    b"",
    b"\0",
    b"GET / HTTP/1.1\r\n\r\n",
    struct.pack("!i", 1 << 30),
    struct.pack("!ii", 8, 0),
    struct.pack("!ii", 16, 80877102) + b"\0" * 8,
    struct.pack("!ii", 9, 196608) + b"x",
    struct.pack("!ii", 8, 80877103) * 3,
)


@pytest.mark.parametrize("sent", HOSTILE)
def test_what_is_not_the_protocol_ends_the_connection(server: PgServer, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=LONG) as raw:
        raw.sendall(sent)
        raw.shutdown(socket.SHUT_WR)
        while raw.recv(1000):
            pass
    with server.connect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_messages_that_lie_are_refused(server: PgServer) -> None:
    secret = server.served.secrets["read"].encode()
    hostile = (
        b"Q" + struct.pack("!i", 1 << 30),
        b"Q" + struct.pack("!i", 2),
        b"Q" + struct.pack("!i", 7) + b"abc",
        b"B" + struct.pack("!i", 12) + b"\0\0" + struct.pack("!hhh", 0, 30000, 0)[:6],
        b"P" + struct.pack("!i", 8) + b"\0\0" + struct.pack("!h", -5),
        b"?" + struct.pack("!i", 4),
        b"Q" + struct.pack("!i", 8) + b"\xff\xfe\xfd\0",
    )
    for one in hostile:
        with socket.create_connection(("127.0.0.1", server.port), timeout=LONG) as raw:
            start = struct.pack("!i", 196608) + b"user\0x\0\0"
            raw.sendall(struct.pack("!i", len(start) + 4) + start)
            raw.sendall(b"p" + struct.pack("!i", len(secret) + 5) + secret + b"\0")
            raw.sendall(one)
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(1000):
                pass
    with server.connect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_nothing_that_came_before_the_encryption_counts() -> None:
    """Whoever stands between could log in with a token of its own, as the client."""

    async def greet() -> None:
        listener = PgListener.__new__(PgListener)
        listener._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        reader, writer = asyncio.StreamReader(), mock.AsyncMock(write=mock.Mock())
        reader.feed_data(struct.pack("!ii", 8, wire.SSL_REQUEST))
        reader.feed_data(struct.pack("!iii", 12, wire.CANCEL_REQUEST, 1))
        with pytest.raises(wire.ProtocolError, match="before the connection was encrypted"):
            await listener._greet(reader, writer)
        writer.write.assert_not_called()

    asyncio.run(greet())
