"""Aggregates of frames: each is a run of consecutive rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nilometer.kernels.aggregate_types import aggregate_type
from nilometer.kernels.arrays import Int64s
from nilometer.model.expressions import Argument
from nilometer.model.time import FOREVER
from nilometer.operators.aggregate import AggregateOperator, AggregateSpec
from nilometer.operators.change_operator import make_changes
from nilometer.operators.change_specs import AggregateCall, AggregateFunction
from nilometer.operators.chunk_store import ChunkStore

_MOST_AT_ONCE: Final = 1 << 20
"""The total number of rows whose frames are aggregated at a time."""
_COUNTS: Final = (AggregateFunction.COUNT, AggregateFunction.COUNT_ROWS)


def aggregate_frames(
    call: AggregateCall, column: pa.Array | None, firsts: Int64s, ends: Int64s, store: ChunkStore
) -> pa.Array:
    """An aggregate of rows [first, end) for each frame: of a column, or without one, of rows."""
    argument = [] if column is None else [column.type]
    types = (pa.int64(), *argument)
    own_call = replace(call, column=None if column is None else 1)
    kind = aggregate_type(own_call, types)
    spec = AggregateSpec(
        1,
        types,
        (own_call,),
        None,
        (Argument(0), Argument(1)),
        (pa.int64(), kind),
        each_instant=True,
    )
    owners, aggregates = [pa.array([], pa.int64())], [pa.array([], kind)]
    for part in _parts(ends - firsts):
        lengths = ends[part] - firsts[part]
        owner = np.repeat(np.arange(part.start, part.stop), lengths)
        first = np.repeat(firsts[part] - (np.cumsum(lengths) - lengths), lengths)
        places = pa.array(first + np.arange(len(owner)))
        values = [] if column is None else [column.take(places)]
        nothing = np.zeros(len(owner), np.int64)
        changes = make_changes([pa.array(owner), *values], nothing, nothing + 1)
        result = AggregateOperator(spec, store).process([changes], FOREVER)
        owners.append(result.column(0))
        aggregates.append(result.column(1))
    places = np.full(len(firsts), -1, np.int64)
    there = np.asarray(pa.concat_arrays(owners))
    places[there] = np.arange(len(there))
    results = pa.concat_arrays(aggregates).take(pa.array(places, mask=places < 0))
    return pc.fill_null(results, 0) if call.function in _COUNTS else results


def _parts(lengths: Int64s) -> Iterator[slice]:
    """Frames in batches of limited total size."""
    first, total = 0, np.cumsum(lengths)
    while first < len(lengths):
        before = total[first] - lengths[first]
        end = int(np.searchsorted(total, before + _MOST_AT_ONCE, "right"))
        end = max(end, first + 1)
        yield slice(first, end)
        first = end
