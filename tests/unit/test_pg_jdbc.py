"""PostgreSQL's protocol, spoken by PostgreSQL's own driver for Java."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from nilometer.spark.java import require_java
from tests.unit.test_pg import ROWS, PgServer, server

__all__ = ["server"]  # a fixture

_DRIVERS = (Path("/usr/share/java/postgresql.jar"),)


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    """A Java with the driver, to be told what to do."""
    driver = next((one for one in _DRIVERS if one.exists()), None)
    if driver is None:
        pytest.skip("the JDBC driver is not installed: apt-get install libpostgresql-jdbc-java")
    (jar,) = Path(pyspark.__file__).parent.glob("jars/py4j-*.jar")
    gateway = JavaGateway.launch_gateway(
        jarpath=str(jar),
        classpath=str(driver),
        java_path=str(require_java().program),
        die_on_exit=True,
    )
    yield gateway.jvm
    gateway.shutdown()


@contextmanager
def connected(java: Any, server: PgServer, scope: str = "read", more: str = "") -> Iterator[Any]:
    java.java.lang.Class.forName("org.postgresql.Driver")
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/nilometer{more}"
    secret = server.served.secrets.get(scope, scope)
    connection = java.java.sql.DriverManager.getConnection(url, "x", secret)
    try:
        yield connection
    finally:
        connection.close()


def rows_of(results: Any) -> list[tuple[Any, ...]]:
    count = results.getMetaData().getColumnCount()
    rows = []
    while results.next():
        rows.append(tuple(results.getObject(n + 1) for n in range(count)))
    return rows


@pytest.mark.parametrize("mode", ["", "?preferQueryMode=simple", "?binaryTransfer=false"])
def test_prepared_statements_are_asked_again_and_again(
    java: Any, server: PgServer, mode: str
) -> None:
    with connected(java, server, more=mode) as connection:
        asked = connection.prepareStatement(
            "SELECT k, v, name, is_on FROM climate WHERE k = ? AND v > ? ORDER BY _time"
        )
        for number in range(12):  # from the fifth on the driver keeps them on the server
            asked.setLong(1, number % 5)
            asked.setDouble(2, 3.0)
            wanted = [
                (row["k"], row["v"], row["name"], row["is_on"])
                for row in ROWS
                if row["k"] == number % 5 and row["v"] is not None and row["v"] > 3
            ]
            assert rows_of(asked.executeQuery()) == wanted


def test_tools_find_tables_and_columns(java: Any, server: PgServer) -> None:
    with connected(java, server) as connection:
        about = connection.getMetaData()
        tables = {row[2]: row[3] for row in rows_of(about.getTables(None, None, "%", None))}
        assert {"climate", "places"} <= set(tables)
        columns = rows_of(about.getColumns(None, None, "climate", None))
        names = [row[3] for row in columns]
        assert names[:4] == ["_time", "k", "v", "name"]
        assert {row[3]: row[5] for row in columns}["v"] == "float8"
        rows_of(about.getSchemas())
        rows_of(about.getPrimaryKeys(None, None, "climate"))


def test_rows_come_in_pieces_where_the_driver_asks_for_that(java: Any, server: PgServer) -> None:
    with connected(java, server) as connection:
        connection.setAutoCommit(False)
        asked = connection.createStatement()
        asked.setFetchSize(7)
        rows = rows_of(asked.executeQuery("SELECT k FROM climate ORDER BY _time"))
        assert [row[0] for row in rows] == [row["k"] for row in ROWS]
        connection.commit()


def test_errors_arrive_as_errors(java: Any, server: PgServer) -> None:
    with pytest.raises(Py4JJavaError, match="password|token"), connected(java, server, "wrong"):
        pass
    with connected(java, server) as connection:
        with pytest.raises(Py4JJavaError, match="nothing_like_it"):
            connection.createStatement().executeQuery("SELECT nothing_like_it FROM climate")
        assert rows_of(connection.createStatement().executeQuery("SELECT 1 AS one")) == [(1,)]
