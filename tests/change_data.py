"""Generated streams for queries in changelog mode: everything awkward, in few rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.int64()),
        ("j", pa.int32()),
        ("x", pa.float64()),
        ("d", pa.decimal128(6, 2)),
        ("s", pa.string()),
        ("b", pa.bool_()),
    ]
)
TABLE = pa.schema([("id", pa.int64()), ("label", pa.string())])
DDL = "ts TIMESTAMP, k BIGINT, j INT, x DOUBLE, d DECIMAL(6, 2), s STRING, b BOOLEAN"
STREAMS = ("R0", "R1", "R2")

LAST = 20
"""Times are at most this many microseconds after the first instant of the data."""

Row = tuple[Any, ...]
Parts = dict[str, tuple[int, int]]
"""Which rows of every stream come in a micro-batch."""

_INF = float("inf")
_VALUES: tuple[tuple[Any, ...], ...] = (
    tuple(range(LAST + 1)),
    (0, 1, 2, 3, None),
    (0, 1, 2, 3),
    (0.25, 0.5, 1.5, -2.0, 0.0, -0.0, None, 0.25, 1024.75, 3.0, float("nan"), _INF, -_INF),
    (Decimal("0.10"), Decimal("-3.25"), Decimal("12.00"), None, Decimal("0.05")),
    ("a", "ab", "b", None),
    (False, True, None),
)
_DELAYS = 7


@dataclass(frozen=True)
class ChangeData:
    """Rows of the streams in order of arrival, their lateness, and a static table."""

    first: int
    streams: dict[str, tuple[Row, ...]]
    lateness: dict[str, int]
    table: tuple[Row, ...]

    def batch(self, name: str, first: int = 0, last: int | None = None) -> pa.RecordBatch:
        return to_batch(self.streams[name][first:last], SCHEMA)

    def static(self) -> pa.RecordBatch:
        return to_batch(self.table, TABLE)

    def watermark(self, name: str) -> int | None:
        """The final watermark of a stream; None if nothing came."""
        times = [row[0] for row in self.streams[name] if row[0] is not None]
        return max(times) - self.lateness[name] if times else None


def to_batch(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in schema]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _combinations() -> int:
    count = _DELAYS
    for values in _VALUES:
        count *= len(values)
    return count


_ROW = st.integers(0, _combinations() - 1)
"""A row and its delay as one number: generated tests spend most of their time drawing."""


def _decode(number: int, wild: bool) -> Row:
    row = []
    for place, values in enumerate(_VALUES):
        number, digit = divmod(number, len(values))
        if place == 3 and not wild:
            digit %= len(values) - 3  # without NaN and infinities
        row.append(values[digit])
    return (*row, number)


@st.composite
def change_data(draw: st.DrawFn, max_rows: int = 8) -> ChangeData:
    """Streams with equal times, equal rows, NULLs, rows out of order, and empty ones."""
    first = draw(st.sampled_from((0, 0, 1_767_225_600_000_000, -1_000_000_007)))
    wild = draw(st.integers(0, 3)) == 0
    streams, lateness = {}, {}
    for name in STREAMS:
        late = draw(st.sampled_from((0, 0, 2, 6)))
        least = draw(st.sampled_from((0, 4, 4, 4, 4)))
        numbers = draw(st.lists(_ROW, min_size=least, max_size=max_rows))
        drawn = [_decode(number, wild) for number in numbers]
        if drawn and draw(st.booleans()):
            drawn.append(drawn[0])
        arrived = sorted(drawn, key=lambda row: row[0] + min(row[-1], late))
        rows = [(first + row[0], *row[1:-1]) for row in arrived]
        if rows and draw(st.integers(0, 9)) == 0:
            rows[0] = (None, *rows[0][1:])
        streams[name], lateness[name] = tuple(rows), late
    entry = st.tuples(st.sampled_from((0, 1, 2, None)), st.sampled_from(("a", "b")))
    return ChangeData(first, streams, lateness, tuple(draw(st.lists(entry, max_size=3))))


@st.composite
def splits(draw: st.DrawFn, data: ChangeData, least: int = 1, most: int = 4) -> list[Parts]:
    """Micro-batches: for each, the part of every stream that arrives in it."""
    batches = draw(st.integers(least, most))
    cuts = {
        name: [0, *sorted(draw(st.integers(0, len(rows))) for _ in range(batches - 1)), len(rows)]
        for name, rows in data.streams.items()
    }
    return [{name: (cut[b], cut[b + 1]) for name, cut in cuts.items()} for b in range(batches)]
