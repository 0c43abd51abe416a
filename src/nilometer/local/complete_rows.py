"""Complete answers: the state of a changelog at one instant, and rows in an order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nilometer.errors import InputError
from nilometer.kernels.canonical import canonical
from nilometer.kernels.row_groups import row_groups
from nilometer.kernels.sort_rows import Sorted, has_order, sort_places
from nilometer.operators.change_operator import DIFF, TIME
from nilometer.operators.change_specs import SortKey
from nilometer.sql.plan.types import TIMESTAMP
from nilometer.sql.questions import Finish

BROKEN = "the changelog retracts a row that it never emitted: part of it is missing or duplicated"


def rows_at(changelog: pa.Table, instant: int | None) -> pa.Table:
    """The rows that hold at an instant (microseconds), or after all changes."""
    if instant is not None:
        until = pa.scalar(instant, pa.int64()).cast(TIMESTAMP)
        changelog = changelog.filter(pc.less_equal(changelog.column(TIME), until))
    rows = changelog.select(range(changelog.num_columns - 2)).combine_chunks()
    columns = [canonical(whole(column)) for column in rows.columns]
    groups = row_groups(columns, len(rows))
    diffs = np.asarray(changelog.column(changelog.num_columns - 1))
    copies = np.zeros(len(groups), np.int64)
    np.add.at(copies, groups.numbers, diffs)
    if (copies < 0).any():
        raise InputError(BROKEN)
    places = pa.array(np.repeat(groups.firsts, copies))
    taken = [column.take(places) for column in columns]
    return pa.Table.from_arrays(taken, schema=rows.schema)


def plain_rows(answer: pa.Table) -> pa.Table:
    """The answer of a query over static tables, which has no time and never changes."""
    if answer.column_names[-2:] == [TIME, DIFF]:
        return rows_at(answer, None)
    return answer.drop_columns([TIME])


def finish_rows(answer: pa.Table, finish: Finish) -> pa.Table:
    """The rows in their order, only those shown, without columns that are only sorted by."""
    if not finish.is_needed:
        return answer
    ordered = sort_rows(answer, finish.keys).slice(finish.offset, finish.limit)
    shown = [place for place in range(answer.num_columns) if place not in finish.hidden]
    return ordered.select(shown)


def in_order_of_time(answer: pa.Table) -> pa.Table:
    """Rows in time order; among changes, retractions come first."""
    names = answer.column_names
    if names[-2:] == [TIME, DIFF]:
        return sort_rows(answer, [SortKey(len(names) - 2), SortKey(len(names) - 1)])
    return sort_rows(answer, [SortKey(names.index(TIME))] if TIME in names else [])


def sort_rows(answer: pa.Table, keys: Sequence[SortKey]) -> pa.Table:
    """Rows sorted by these columns, and then by all columns."""
    answer = answer.combine_chunks()
    every = (*keys, *map(SortKey, range(answer.num_columns)))
    by = (
        Sorted(whole(answer.column(key.column)), key.descending, key.nulls_first)
        for key in every
        if has_order(answer.schema.field(key.column).type)
    )
    return answer.take(pa.array(sort_places(by, len(answer))))


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A column as a single chunk."""
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        return combined.chunk(0) if combined.num_chunks else pa.array([], combined.type)
    return combined
