"""The first rows of each partition, one for each of the first positions of its order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final

import pyarrow as pa

from nilometer.errors import SqlError
from nilometer.model.expressions import Apply, Argument, Binary, Constant, Expression, Operator
from nilometer.operators.change_specs import AggregateCall, AggregateFunction
from nilometer.sql.bind.windowed.refusals import require_comparable
from nilometer.sql.expressions.compound_aggregates import read_directions
from nilometer.sql.parse.over_calls import RANK, TopCall
from nilometer.sql.parse.places import place_of
from nilometer.sql.plan.aggregated import aggregate
from nilometer.sql.plan.changes_plan import Column, Node
from nilometer.sql.plan.operations import compute, union_all

MOST_ROWS: Final = 100


def first_rows(node: Node, call: TopCall, sql: str) -> Node:
    """The first rows of a node, whose columns are its own, the partition, and the order.

    Its last column is the number of a row in the order. Ties are ordered by all columns.
    """
    partition, terms, limit = call.args["partition"], call.args["order"], call.args["limit"]
    place = place_of(call, sql)
    if limit > MOST_ROWS:
        raise SqlError(
            f"ROW_NUMBER() is limited to the first {MOST_ROWS} rows of a partition, got {limit}",
            place=place,
            hint="use a lower limit, or order the answer itself: ORDER BY v DESC LIMIT 1000",
        )
    count = len(node.columns) - len(partition) - len(terms)
    own, keys, order = (
        node.columns[:count],
        node.columns[count : count + len(partition)],
        node.columns[count + len(partition) :],
    )
    for one, tree in zip((*keys, *order), (*partition, *terms), strict=True):
        require_comparable(one.kind, place_of(tree, sql), "OVER")
    for one in own:
        require_comparable(one.kind, place, "rows that ROW_NUMBER() orders")
    fields = [f"c{number}" for number in range(len(own))]
    row = _struct(fields, [Argument(place) for place in range(len(own))])
    names = [f"o{number}" for number in range(len(order))]
    first = count + len(keys)
    orders = [Argument(first + number) for number in range(len(order))]
    ordered = _struct([*names, "v"], [*orders, row])
    row_kind = pa.struct([pa.field(f, one.kind) for f, one in zip(fields, own, strict=True)])
    kinds = [pa.field(name, one.kind) for name, one in zip(names, order, strict=True)]
    kind = pa.struct([*kinds, pa.field("v", row_kind)])
    below = compute(
        node,
        None,
        (*(Argument(count + n) for n in range(len(keys))), ordered),
        (*keys, Column("row", kind)),
        (*(one.name for one in keys), "all columns"),
    )
    is_down, by = read_directions(terms)
    function = AggregateFunction.MAX_BY if is_down else AggregateFunction.MIN_BY
    calls = [AggregateCall(function, len(keys), rank=rank, order=by) for rank in range(limit)]
    shown = [Column(f"row {rank + 1}", row_kind) for rank in range(limit)]
    columns = (*keys, Column("rows", pa.int64()), *shown)
    groups = aggregate(
        below,
        len(keys),
        (AggregateCall(AggregateFunction.COUNT_ROWS), *calls),
        None,
        tuple(Argument(place) for place in range(len(columns))),
        columns,
        tuple(one.name for one in columns),
    )
    result_columns = (*own, Column(RANK, pa.int32()))
    parts = []
    for rank in range(limit):
        test = Binary(Operator.GREATER, Argument(len(keys)), Constant(rank))
        values = [Argument(len(keys) + 1 + rank, (field,)) for field in fields]
        texts = (f"rows > {rank}", *(one.name for one in own), str(rank + 1))
        parts.append(compute(groups, test, (*values, Constant(rank + 1)), result_columns, texts))
    return union_all(parts, result_columns) if len(parts) != 1 else parts[0]


def _struct(names: Sequence[str], values: Sequence[Expression]) -> Expression:
    """Several values as a struct, by name."""
    pairs = zip(map(Constant, names), values, strict=True)
    return Apply("named_struct", tuple(chain.from_iterable(pairs)))
