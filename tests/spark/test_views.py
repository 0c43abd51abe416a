"""Views: named texts of queries, read as if they stood in WITH, kept, replaced and dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.errors import InputError, SqlError

ROWS = [("north", 12, "12:00"), ("south", 5, "12:20"), ("north", 8, "12:40"), ("south", 1, "15:00")]
VIEWS = {
    "Dear": "SELECT store, price, ts FROM Sales WHERE price > 4",
    "Totals": "SELECT store, SUM(price) AS total FROM Dear [RANGE 1 HOUR] GROUP BY store",
    "Named": "SELECT D.store, D.price, S.city FROM Dear D JOIN Stores S ON D.store = S.store",
}
QUERIES = (
    "SELECT * FROM Dear",
    "SELECT store, total * 2 AS twice FROM Totals WHERE total > 5",
    "SELECT city, price FROM Named",
    "SELECT A.store, B.store FROM Dear A, Dear B WINDOW(A, B) = 30 MINUTES WHERE A.price < B.price",
    "SELECT T.total, D.price FROM Totals T, Dear [RANGE 1 HOUR] D WHERE T.store = D.store",
)


@pytest.fixture
def db(spark: SparkSession) -> nm.Database:
    opened = nm.connect(spark)
    rows = spark.createDataFrame(ROWS, "store STRING, price INT, time STRING")
    sales = rows.selectExpr("store", "price", "timestamp('2026-01-31 ' || time) AS ts")
    opened.create_stream("Sales", sales, time="ts")
    stores = spark.createDataFrame([("north", "Kiel")], "store STRING, city STRING")
    opened.create_table("Stores", stores)
    return opened


def rows_of(db: nm.Database, query: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, db.sql(query).collect()), key=repr)


def test_a_view_is_what_stands_in_with(db: nm.Database) -> None:
    for name, text in VIEWS.items():
        assert db.execute(f"CREATE VIEW {name} AS {text}").message == f"created view {name}"
    written = "WITH " + ", ".join(f"{name} AS ({text})" for name, text in VIEWS.items())
    for query in QUERIES:
        expected = rows_of(nm_without_views(db), f"{written} {query}")
        assert rows_of(db, query) == expected
        assert expected
    shown = db.execute("SHOW VIEWS").rows
    assert shown is not None
    assert dict(zip(*shown.to_pydict().values(), strict=True)) == dict(sorted(VIEWS.items()))
    described = db.execute("DESCRIBE totals").rows
    assert described is not None
    assert described.to_pylist()[0]["value"] == VIEWS["Totals"]
    with pytest.raises(SqlError, match="view Named reads Dear"):
        db.execute("DROP VIEW Dear")
    with pytest.raises(SqlError) as refused:
        db.execute("CREATE OR REPLACE VIEW Dear AS SELECT * FROM Totals")
    assert refused.value.message == "the view Dear would read itself"
    with pytest.raises(SqlError, match="view Dear already exists"):
        db.execute("CREATE VIEW dear AS SELECT * FROM Sales")
    with pytest.raises(SqlError) as refused:
        db.execute("CREATE OR REPLACE VIEW Wrong AS SELECT colour FROM Dear")
    assert "Dear AS SELECT" not in str(refused.value)
    assert refused.value.place is not None
    with pytest.raises(SqlError, match="DataFrame Sales already exists"):
        db.execute("CREATE VIEW Sales AS SELECT 1")
    said = db.execute("CREATE OR REPLACE VIEW Dear AS SELECT * FROM Sales WHERE price > 10")
    assert said.message == "replaced view Dear"
    assert rows_of(db, "SELECT price FROM Dear")[0][0] == 12
    assert db.execute("CREATE VIEW IF NOT EXISTS Dear AS SELECT 1").message == (
        "view Dear already exists"
    )
    for name in ("Totals", "Named", "Dear"):
        assert db.execute(f"DROP VIEW {name}").message == f"dropped view {name}"
    assert db.execute("DROP VIEW IF EXISTS Dear").message == "there was no view Dear"
    with pytest.raises(SqlError):
        db.sql("SELECT * FROM Dear")


def nm_without_views(db: nm.Database) -> nm.Database:
    """The same DataFrames in a database that knows no views."""
    relations, frames = db._compiler.named.all
    other = nm.connect(db.spark)
    for name, relation in relations.items():
        other._compiler.named.add(relation, frames[name])
    return other


def test_views_and_queries_hold_each_other(spark: SparkSession, tmp_path: Path) -> None:
    with nm.connect(spark, path=tmp_path / "plant") as db:
        db.execute("CREATE STREAM Made (v DOUBLE) FROM synthetic WITH (rate = 50, seed = 7)")
        db.execute("CREATE VIEW High AS SELECT v FROM Made WHERE v > 0")
        db.execute("CREATE VIEW Higher AS SELECT v FROM High WHERE v > 1")
        with pytest.raises(SqlError, match="view High reads Made"):
            db.execute("DROP STREAM Made")
        db.execute("CREATE QUERY q AS SELECT v FROM Higher")
        for statement in (
            "DROP VIEW Higher",
            "CREATE OR REPLACE VIEW Higher AS SELECT v FROM Made",
            "CREATE OR REPLACE VIEW High AS SELECT v FROM Made",
        ):
            with pytest.raises((SqlError, InputError), match="query q reads High"):
                db.execute(statement)
        db.queries["q"].awaitTermination(3)
    with nm.connect(spark, path=tmp_path / "plant") as db:
        assert all(row.v > 1 for row in db.history("q").collect())
        shown = db.execute("SHOW VIEWS").rows
        assert shown is not None
        assert shown.num_rows == 2


def test_several_statements_in_one_call(db: nm.Database) -> None:
    answer = db.sql(
        "CREATE TABLE T (k INT); INSERT INTO T VALUES (:k), (2); SELECT k FROM T WHERE k < :k;", k=3
    )
    assert [row.k for row in answer.collect()] == [2]
    assert db.execute("INSERT INTO T VALUES (4); DELETE FROM T").message == "deleted 3 rows from T"
    with pytest.raises(SqlError) as refused:
        db.execute("INSERT INTO T VALUES (5);\nINSERT INTO Nothing VALUES (6); DROP TABLE T")
    assert refused.value.place is not None
    assert "line 2, column 13" in str(refused.value)
    assert str(refused.value.detail).endswith("statement 2 of 3; those before it were run")
    assert [row.k for row in db.sql("SELECT k FROM T").collect()] == [5]
    with pytest.raises(SqlError) as refused:
        db.sql("DROP TABLE T; SELECT k FROM T; SELECT k FROM T")
    assert refused.value.message == "only the last statement can be a query"
    with pytest.raises(SqlError, match="cannot read the statement"):
        db.sql("DROP TABLE T; SELECT k, FROM T")
    with pytest.raises(InputError, match="this is a query"):
        db.execute("DROP TABLE T; SELECT k FROM T")
    with pytest.raises(SqlError, match="got none"):
        db.sql(" ; ")
    assert db.sql("SELECT k FROM T").count() == 1


def test_the_answer_of_a_batch_is_that_of_its_last_row(db: nm.Database) -> None:
    changes = db.sql("SELECT store, SUM(price) AS total FROM Sales [RANGE 3 HOURS] GROUP BY store")
    assert sorted(map(tuple, nm.snapshot(changes).collect())) == [("north", 20), ("south", 6)]
    nothing = db.sql("SELECT price FROM Sales [RANGE 1 HOUR] WHERE price > 99 EMIT CHANGES")
    assert nm.snapshot(nothing).collect() == []
    stored = nm.snapshot(changes.where("total IS NOT NULL"))
    assert stored.collect() == []
