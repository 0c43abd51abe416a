"""Aggregates of all rows of a partition until each row: their state is totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from nilometer.kernels.aggregate_types import aggregate_type
from nilometer.kernels.arrays import Int64s
from nilometer.kernels.canonical import canonical
from nilometer.kernels.row_groups import row_groups
from nilometer.model.expressions import Argument
from nilometer.model.time import FOREVER
from nilometer.operators.aggregate import AggregateOperator, AggregateSpec
from nilometer.operators.change_operator import (
    StoredChunks,
    diffs_of,
    make_changes,
    row_columns,
    times_of,
)
from nilometer.operators.change_specs import AggregateCall, AggregateFunction
from nilometer.operators.chunk_store import ChunkStore

_COUNT = AggregateCall(AggregateFunction.COUNT_ROWS)
"""It differs in every instant that has a row, so each instant has an answer."""


class RunningAggregates:
    """Aggregate calls over rows partitioned by the values of some columns."""

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        keys: Sequence[int],
        types: Sequence[pa.DataType],
        store: ChunkStore,
    ) -> None:
        self._calls = tuple(dict.fromkeys(calls))
        taken = dict.fromkeys(one.column for one in self._calls if one.column is not None)
        self._columns = (*keys, *taken)
        self._keys = len(keys)
        own_types = tuple(types[place] for place in self._columns)
        places = {place: len(keys) + number for number, place in enumerate(taken)}
        own_calls = [
            one if one.column is None else replace(one, column=places[one.column])
            for one in self._calls
        ]
        kinds = (
            *own_types[: len(keys)],
            pa.int64(),
            *(aggregate_type(one, own_types) for one in own_calls),
        )
        spec = AggregateSpec(
            len(keys),
            own_types,
            (_COUNT, *own_calls),
            None,
            tuple(map(Argument, range(len(kinds)))),
            kinds,
            only_grows=True,
        )
        self._operator: AggregateOperator = spec.start(store)

    @property
    def stored(self) -> Sequence[StoredChunks]:
        """All state that it keeps in the store."""
        return self._operator.stored

    def take(self, columns: Sequence[pa.Array], times: Int64s) -> dict[AggregateCall, pa.Array]:
        """The results of the calls for new rows: over all rows until the time of each.

        Times only have to grow within a partition.
        """
        own_columns = [columns[place] for place in self._columns]
        changes = make_changes(own_columns, times, np.ones(len(times), np.int64))
        results = self._operator.process([changes], FOREVER)
        results = results.take(pa.array(np.flatnonzero(diffs_of(results) > 0)))
        answers = row_columns(results)
        keys = [
            pa.concat_arrays([answer, canonical(column)])
            for answer, column in zip(answers[: self._keys], own_columns, strict=False)
        ]
        both = np.concatenate([times_of(results), times])
        numbers = row_groups([*keys, pa.array(both)], len(both)).numbers
        places = np.full(int(numbers.max(initial=-1)) + 1, -1, np.int64)
        places[numbers[: len(results)]] = np.arange(len(results))
        mine = places[numbers[len(results) :]]
        wanted = pa.array(mine, mask=mine < 0)
        return {
            call: answer.take(wanted)
            for call, answer in zip(self._calls, answers[self._keys + 1 :], strict=True)
        }

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return self._operator.snapshot()

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self._operator.restore(snapshot)
