"""`python -m benchmarks.match_recognize`: rows per second through patterns, without Spark.

Rows arrive in micro-batches, as from a stream. The matches are compared with those of a run over
all rows at once.
"""

from __future__ import annotations

import argparse
import time
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from nilometer.local.database import LocalDatabase

PATTERNS: Final = {
    "A then B": "PATTERN (A X*? B) WITHIN INTERVAL '5' SECONDS DEFINE A AS v > 99, B AS v < 1",
    "A then a larger B": "PATTERN (A X*? B) WITHIN INTERVAL '5' SECONDS "
    "DEFINE A AS v > 99, B AS B.v > A.v",
    "A and no C": "PATTERN (A NOT C) WITHIN INTERVAL '5' SECONDS DEFINE A AS v > 99, C AS v < 1",
    "the shape of a V": "PATTERN (STRT DOWN+ UP+) WITHIN INTERVAL '5' SECONDS "
    "DEFINE DOWN AS DOWN.v < PREV(DOWN.v), UP AS UP.v > PREV(UP.v)",
}
"""Each key has a row every tenth of a second, and v is uniform between 0 and 100."""


def make_rows(count: int, keys: int) -> pa.Table:
    rng = np.random.default_rng(1)
    times = np.arange(count) * (100_000 // keys)
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "k": np.arange(count) % keys,
            "v": rng.random(count) * 100,
        }
    )


def measure(pattern: str, rows: pa.Table, batch: int) -> tuple[float, int]:
    """Rows per second of processor time, and the number of matches."""
    statement = (
        "SELECT * FROM S MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES FIRST(v) AS first, "
        f"LAST(v) AS last, COUNT(*) AS n {pattern}) AS m"
    )
    db = LocalDatabase(1)
    db.create_stream("S", rows.slice(0, 0), time="ts")
    query = db.query(statement)
    began, changes = time.process_time(), []
    for part in rows.to_batches(max_chunksize=batch):
        changes.append(query.feed({"S": part}))
    spent = time.process_time() - began
    whole = LocalDatabase(1)
    whole.create_stream("S", rows, time="ts")
    last = rows["ts"][-1]
    right = whole.sql(statement)
    known = right.filter(pc.less(right["_time"], last))
    streamed = pa.concat_tables(changes)
    order = [(name, "ascending") for name in right.column_names]
    assert streamed.sort_by(order).equals(known.sort_by(order)), "the answers differ"
    return rows.num_rows / spent, streamed.num_rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=10_000)
    options = parser.parse_args()
    table = Table("pattern", "keys", "rows a second", "matches")
    for name, pattern in PATTERNS.items():
        for keys in (1, 100):
            rate, matches = measure(pattern, make_rows(options.rows, keys), options.batch)
            table.add_row(name, str(keys), f"{rate:,.0f}", f"{matches:,}")
    Console().print(table)


if __name__ == "__main__":
    main()
