"""COUNT_NLJ in a query: the ROWS windows of SQL, which order rows of equal time."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from nilometer.local.database import LocalDatabase
from nilometer.local.run_query import LocalQuery
from tests.examples import share_of

SCHEMA = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("k", pa.int64()), ("v", pa.float64())])
STATEMENTS = (
    "SELECT {hint} A.k, A.v, B.v AS w FROM A [ROWS 2], B [ROWS 3] WHERE A.k = B.k",
    "SELECT {hint} A.v, B.v AS w FROM A [ROWS 1], B [ROWS 4]",
    "SELECT {hint} A.v, B.v AS w, C.v AS x FROM A [ROWS 3], B [ROWS 3], C [ROWS 2] "
    "WHERE A.k = B.k AND B.k = C.k AND A.v > 1.0",
    "SELECT {hint} A.v, B.v AS w, C.v AS x FROM A [ROWS 3], B [ROWS 3], C [ROWS 5] "
    "WHERE A.k = B.k AND B.v = C.v",
    "SELECT {hint} A.k, A.v, B.v AS w FROM A [ROWS 4], B [ROWS 5] "
    "WINDOW(A, B) = 3 MICROSECONDS WHERE A.k = B.k AND A.v <= B.v",
)


def stream(random: Random, rows: int) -> pa.Table:
    times, time = [], 0
    for _ in range(rows):
        times.append(time)
        time += random.choice((0, 0, 1, 2))
    keys = [random.choice((None, 1, 2)) for _ in times]
    values = [random.choice((None, 0.0, 1.0, 2.0, float("nan"))) for _ in times]
    return pa.table([times, keys, values], schema=SCHEMA)


def run(statement: str, tables: dict[str, pa.Table], lateness: int, seed: int) -> list[object]:
    """All results of random micro-batches with a restart, then of what a batch run adds."""
    random, db = Random(seed), LocalDatabase()
    for name, rows in tables.items():
        db.create_stream(name, rows, time="ts", lateness=lateness)
    query = db.query(statement)
    assert isinstance(query, LocalQuery)
    results, done = [], dict.fromkeys(tables, 0)
    while any(done[name] < len(table) for name, table in tables.items()):
        batch = {}
        for name, table in tables.items():
            part = table.slice(done[name], random.randint(0, 4))
            done[name] += len(part)
            batch[name] = pa.Table.combine_chunks(part).to_batches()
        results += query.feed({n: parts[0] for n, parts in batch.items() if parts}).to_pylist()
        query.restart()
    return sorted(map(repr, results))


@pytest.mark.parametrize("statement", STATEMENTS)
def test_count_nlj_gives_the_results_of_the_columnar_join(statement: str) -> None:
    seen = 0
    for seed in range(share_of(50)):
        random = Random(f"{statement} {seed}")
        tables = {name: stream(random, random.randint(8, 25)) for name in "ABC"}
        lateness = random.choice((0, 0, 2))
        for name, table in tables.items():
            if lateness:  # within lateness rows may come in any order
                times = table["ts"].cast(pa.int64()).to_pylist()
                order = sorted(range(len(table)), key=lambda i: times[i] + random.random() * 1.9)
                tables[name] = table.take(order)
        expected = run(statement.format(hint=""), tables, lateness, seed)
        assert run(statement.format(hint="/*+ COUNT_NLJ */"), tables, lateness, seed) == expected
        seen += len(expected)
    assert seen > 10


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_batch_gives_all_results(statement: str) -> None:
    random, db = Random(statement), LocalDatabase()
    for name in "ABC":
        db.create_stream(name, stream(random, 30), time="ts")
    expected = db.sql(statement.format(hint="")).to_pylist()
    rows = db.sql(statement.format(hint="/*+ COUNT_NLJ */")).to_pylist()
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))
    assert rows
