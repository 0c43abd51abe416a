"""Streams and results of queries as tables of the past: asked once, without a window."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.errors import SqlError, UnknownNameError
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.server.scopes import Scope
from nilometer.server.service import Service
from nilometer.server.settings import ServerSettings
from nilometer.server.tokens import Tokens
from nilometer.upkeep.places import CATALOG_FILE
from tests.patience import wait_for
from tests.pg_at_work import listening

BEGIN = datetime(2026, 1, 31, 12, tzinfo=UTC)
ROWS = [(n % 3, float(n), BEGIN + timedelta(seconds=n)) for n in range(60)]


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[nm.Database]:
    lines = (json.dumps({"k": k, "v": v, "ts": t.isoformat()}) for k, v, t in ROWS)
    (tmp_path / "rows.jsonl").write_text("".join(f"{line}\n" for line in lines))
    with nm.connect(spark, path=tmp_path / "plant") as opened:
        opened.execute(
            "CREATE STREAM S (k BIGINT, v DOUBLE, ts TIMESTAMP, TIME ts, HISTORY FOREVER) "
            f"FROM file WITH (address = '{tmp_path / 'rows.jsonl'}', speed = 'max')"
        )
        opened.execute("CREATE TABLE T (k BIGINT, name STRING)")
        opened.execute("INSERT INTO T VALUES (0, 'zero'), (1, 'one')")
        opened.execute("CREATE QUERY high AS SELECT k, v FROM S WHERE v >= 50 FROM START")
        opened.execute(
            "CREATE QUERY counts AS SELECT k, COUNT(*) AS n FROM S [UNBOUNDED] GROUP BY k "
            "EMIT CHANGES FROM START"
        )
        yield opened


def test_what_is_stored_can_be_asked(db: nm.Database) -> None:
    wait_for(lambda: db.select("SELECT COUNT(*) AS n FROM S").to_pylist() == [{"n": 60}])
    answer = db.select(
        "SELECT k, SUM(v) AS total FROM S WHERE ts >= :begin GROUP BY k ORDER BY k",
        begin=BEGIN + timedelta(seconds=30),
    )
    wanted = [sum(v for k, v, _ in ROWS[30:] if k == one) for one in range(3)]
    assert answer.to_pylist() == [{"k": k, "total": total} for k, total in enumerate(wanted)]
    wait_for(lambda: len(db.select("SELECT * FROM high")) == 10)
    joined = db.select("SELECT T.name, MAX(H.v) AS most FROM high H JOIN T USING (k) GROUP BY 1")
    assert sorted(map(tuple, (one.values() for one in joined.to_pylist()))) == [
        ("one", 58.0),
        ("zero", 57.0),
    ]
    wait_for(
        lambda: db.select("SELECT k, n FROM counts ORDER BY k").to_pydict().get("n") == [20, 20, 20]
    )
    past = db.select(
        "SELECT k, n FROM counts FOR SYSTEM_TIME AS OF '2026-01-31 12:00:03' ORDER BY k"
    )
    assert past.to_pydict() == {"k": [0, 1, 2], "n": [2, 1, 1]}
    db.execute("CREATE VIEW Late AS SELECT v FROM S WHERE v > 57")
    assert db.select("SELECT COUNT(*) AS n FROM Late").to_pylist() == [{"n": 2}]
    db.execute("CREATE VIEW Later AS SELECT v FROM Late UNION ALL SELECT v FROM Late")
    often = " UNION ALL ".join(["SELECT v FROM Later"] * 101)
    with pytest.raises(SqlError, match="the query expands too many views"):
        db.select(often)


def test_psql_is_answered_and_follows(db: nm.Database, tmp_path: Path) -> None:
    wait_for(lambda: len(db.select("SELECT * FROM high")) == 10)
    with SensorCatalog.open(tmp_path / "plant" / CATALOG_FILE) as catalog:
        tokens = Tokens(catalog)
        secret = tokens.create("reader", Scope.READ)
        service = Service(db, ServerSettings())
        with closing(service), listening(service, tokens) as port:
            follow(f"host=127.0.0.1 port={port} user=x dbname=x password={secret}")


def follow(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute("SELECT MAX(v) FROM high WHERE k = %s", [0])
        assert cursor.fetchone() == (57.0,)
        with connection.cursor().copy("COPY (SUBSCRIBE high) TO STDOUT") as copy:
            rows = [row for _, row in zip(range(10), copy.rows(), strict=False)]
            values = sorted(float(str(row[1])) for row in rows)
            assert values == [float(n) for n in range(50, 60)]
            connection.cancel_safe()
            with pytest.raises(psycopg.errors.QueryCanceled):
                copy.read()
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_explain_says_what_is_read(db: nm.Database) -> None:
    plan = db.explain("SELECT COUNT(*) AS n FROM S WHERE ts > '2026-01-31 12:00:30'")
    assert "as a one-time query, it is answered from stored data, in this process" in plan
    assert "from 2026-01-31 12:00:30.000000 to now" in plan
    assert "as a named query" not in plan  # it has no window
    both = db.explain("SELECT v FROM S WHERE v > 3")
    assert "as a named query, it would run in the shared engine" in both
    assert "as a one-time query" in both


def test_what_goes_on_is_not_of_the_past(db: nm.Database) -> None:
    for text in (
        "SELECT k FROM S [RANGE 1 HOUR] EMIT CHANGES",
        "SELECT v FROM S FROM START",
        "SELECT A.v FROM S A, S B WINDOW = 1 SECOND",
        "SELECT name FROM T",
    ):
        assert not db.asks_past(text)
    assert db.asks_past("SELECT v FROM S ORDER BY v LIMIT 3")
    with pytest.raises(UnknownNameError):
        db.select("SELECT * FROM nobody")
    with pytest.raises(SqlError):
        db.select("SELECT * FROM read_text('/etc/passwd')")
    with pytest.raises(SqlError):  # a stream that goes on has no past instant
        db.execute("CREATE QUERY q AS SELECT v FROM S FOR SYSTEM_TIME AS OF '2026-01-01'")
