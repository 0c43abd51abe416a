"""EXPLAIN: stable text that tells what is kept, and for how long."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from nilometer.local.database import LocalDatabase
from nilometer.sql.catalog import Statistics
from nilometer.sql.explain.explain_plan import explain_plan
from nilometer.sql.statements import ExplainFormat

TIMESTAMP = pa.timestamp("us", tz="UTC")
CAMERA = pa.schema(
    [("obj_id", pa.int64()), ("ts", TIMESTAMP), ("speed", pa.float64()), ("face", pa.string())]
)
PATH = """
SELECT A.obj_id, A.ts, B.ts, C.ts
FROM   Camera1 A, Camera2 B, Camera3 C
WINDOW (A,B) = 5 SECONDS AND DWINDOW (B,C) = 10 SECONDS
WHERE  A.obj_id = B.obj_id AND B.obj_id = C.obj_id
"""
SCREEN = (24, 100)


@pytest.fixture
def db() -> LocalDatabase:
    made = LocalDatabase(buckets=4)
    stated = Statistics(100.0, {"obj_id": 1000.0})
    made.create_stream("Camera1", CAMERA.empty_table(), time="ts", statistics=stated)
    made.create_stream("Camera2", CAMERA.empty_table(), time="ts", lateness=2_000_000)
    made.create_stream("Camera3", CAMERA.empty_table(), time="ts")
    made.create_table("Wanted", pa.schema([("id", pa.int64()), ("why", pa.string())]).empty_table())
    return made


def explained(db: LocalDatabase, sql: str, form: ExplainFormat = ExplainFormat.TEXT) -> str:
    return explain_plan(db.plan(sql), form)


def test_the_path_query_fits_on_a_screen(db: LocalDatabase) -> None:
    text = explained(db, PATH)
    assert (
        text
        == """\
Window join of 3 streams; every result is appended once
  result    obj_id, ts, ts, ts, _time
Windows: WINDOW(A, B) = 5s AND DWINDOW(B, C) = 10s
  how much later a top stream's row may be than a left one's; * is derived from other windows
       A   B     C
  A    -  5s  15s*
  B   5s   -   10s
  C  5s*  0s     -
State per source: columns, and how long they are kept (t is the row's time)
  A = Camera1  obj_id, ts
               15s, about 1,500 rows: until B has passed t + 5s and C has passed t + 15s
  B = Camera2  obj_id, ts
               10s: until A has passed t + 5s and C has passed t + 10s (lateness 2s)
  C = Camera3  obj_id, ts
               5s: until A has passed t + 5s and B has passed t
Key: A.obj_id = B.obj_id = C.obj_id (BIGINT)
Kernel: hash, matches are found by key and time
Probe order of new rows (assuming 1 row/s, 100 values until measured)
  new A  B, C  (101 rows probed per second)
  new B  C, A  (1.225 rows probed per second)
  new C  B, A  (1.15 rows probed per second)
Runs in one stage of 4 buckets: all streams share the key"""
    )
    lines = text.splitlines()
    assert len(lines) <= SCREEN[0]
    assert max(map(len, lines)) <= SCREEN[1]


def test_tightened_windows_say_what_was_given(db: LocalDatabase) -> None:
    text = explained(
        db,
        "SELECT A.ts FROM Camera1 A, Camera2 B, Camera3 C "
        "WINDOW(A,B) = 1 S AND WINDOW(B,C) = 1 S AND WINDOW(A,C) = 1 MINUTE",
    )
    assert "2s* (given 60s)" in text


def test_selections_residuals_tables_and_rows_windows_are_shown(db: LocalDatabase) -> None:
    text = explained(
        db,
        "SELECT A.obj_id, why FROM Camera1 A [ROWS 3], Camera2 B [RANGE 1 MINUTE], Wanted "
        "WHERE A.obj_id = B.obj_id AND A.speed > 3 AND B.speed < 9 AND A.speed < B.speed "
        "AND Wanted.id = A.obj_id",
    )
    for line in (
        "Window join of 2 streams and 1 table; every result is appended once",
        "               the last 3 rows, until all streams have passed the next",
        "               60s: until A has passed t + 60s (lateness 2s)",
        "               forever, as read when the query first started",
        "Filter before the join: B.speed < 9",
        "Filter after the ROWS window of A: A.speed > 3",
        "Key: A.obj_id = B.obj_id = Wanted.id (BIGINT)",
        "Join condition: A.speed < B.speed",
        "Runs in one stage of 1 bucket: a ROWS window needs all rows of its stream in one bucket",
    ):
        assert line in text.splitlines(), text


def test_joins_on_different_attributes_say_how_they_are_split(db: LocalDatabase) -> None:
    text = explained(
        db,
        "SELECT A.ts FROM Camera1 A, Camera2 B, Camera3 C WINDOW = 1 S "
        "WHERE A.obj_id = B.obj_id AND B.face = C.face",
    )
    assert text.splitlines()[-2:] == [
        "Runs in one stage of 4 buckets, a grid of 2 x 2: "
        "no key is common to all streams, so each key is a dimension",
        "  replicated to several buckets: A 2 times, C 2 times",
    ]


def test_columns_that_nobody_needs_do_not_travel(db: LocalDatabase) -> None:
    plan = db.plan("SELECT A.speed + B.speed AS s FROM Camera1 A, Camera2 B WINDOW = 1 S")
    assert [[str(one.ref) for one in s.carried] for s in plan.sources] == [
        ["A.ts", "A.speed"],
        ["B.ts", "B.speed"],
    ]


def test_dot_draws_every_bound_and_every_source(db: LocalDatabase) -> None:
    text = explained(db, PATH, ExplainFormat.DOT)
    assert text.startswith("digraph plan {")
    assert text.count("{") == text.count("}")
    arrows = re.findall(r"w(\d) -> w(\d) \[label=\"<= (\w+)\", style=(\w+)\]", text)
    assert ("0", "2", "15s", "dashed") in arrows
    assert ("1", "2", "10s", "solid") in arrows
    assert len(arrows) == 6
    assert 'label="stream Camera2 as B"' in text
