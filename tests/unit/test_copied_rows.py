"""Rows that several buckets hold copies of are taken over as often as one of them holds them."""

from __future__ import annotations

import struct
from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.operators.copied_rows import CopiedRows

Row = tuple[int, float, str | None]
SCHEMA = pa.schema([("k", pa.int64()), ("x", pa.float64()), ("s", pa.string())])
ROWS = st.tuples(
    st.integers(0, 1), st.sampled_from((0.0, -0.0, float("nan"))), st.sampled_from(("a", None))
)
BUCKETS = st.lists(
    st.tuples(st.integers(0, 1), st.lists(st.lists(st.tuples(ROWS, st.booleans()), max_size=5))),
    max_size=5,
)


@settings(max_examples=300)
@given(BUCKETS)
def test_a_row_counts_as_often_as_it_is_held_where_it_is_held_most_often(
    buckets: list[tuple[int, list[list[tuple[Row, bool]]]]],
) -> None:
    """Buckets of two groups of copies, each with several chunks, of which some rows are chosen."""
    copies, counts = CopiedRows(), [Counter[tuple[object, ...]]() for _ in range(2)]
    due = [Counter[tuple[object, ...]]() for _ in range(2)]
    for group, chunks in buckets:
        copies.begin(group)
        for chunk in chunks:
            rows, chosen = [row for row, _ in chunk], [one for _, one in chunk]
            kept = copies.new(to_batch(rows), np.array(chosen, np.bool_))
            counts[group].update(
                bits(row) for row, is_kept in zip(rows, kept, strict=True) if is_kept
            )
        due[group] |= Counter(
            bits(row) for chunk in chunks for row, is_chosen in chunk if is_chosen
        )
    assert counts == due


def to_batch(rows: list[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [[] for _ in SCHEMA]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def bits(row: Row) -> tuple[object, ...]:
    return row[0], struct.pack("d", row[1]), row[2]
