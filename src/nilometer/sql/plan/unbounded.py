"""[UNBOUNDED]: rows that count for ever, where their state is bounded by the groups."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from nilometer.errors import Place, SqlWindowError
from nilometer.kernels.order_keys import has_order_keys
from nilometer.model.time import FOREVER
from nilometer.operators.aggregate import EXTREMES, AggregateSpec
from nilometer.operators.aggregate_orders import ORDERED
from nilometer.operators.change_specs import AggregateCall, SetFunction
from nilometer.operators.compute import ComputeSpec, UnionAllSpec
from nilometer.operators.lasting import LastingSpec
from nilometer.operators.paced import PacedSpec
from nilometer.operators.set_counts import SetCountsSpec
from nilometer.sql.plan.changes_plan import Block, Combine, Node, Operation, is_static

_ALSO = {"MIN_BY": "FIRST (or MIN_BY)", "MAX_BY": "LAST (or MAX_BY)"}
"""Aggregates by which others are computed, with the names of these."""
_OF_ROWS = (SetFunction.WITH, SetFunction.WITHOUT)


def require_bounded(node: Node, place: Place) -> None:
    """Refuse a plan whose state would grow without bound."""
    for one in node.inputs:
        require_bounded(one, place)
    if not any(map(_is_unbounded, node.inputs)):
        return
    match node:
        case Operation(AggregateSpec() as spec):
            for call in spec.calls:
                if not is_kept_short(call, spec.input_types, grows=spec.only_grows):
                    name = _ALSO.get(call.function, str(call.function))
                    raise _grows(f"{name} keeps all values", place)
        case Operation(ComputeSpec() | UnionAllSpec() | PacedSpec()):
            pass
        case Operation(SetCountsSpec(function)) if function not in _OF_ROWS:
            pass
        case Combine() if sum(not is_static(one) for one in node.inputs) == 1:
            pass
        case _:
            raise _grows("rows would be kept", place)


def is_kept_short(call: AggregateCall, kinds: Sequence[pa.DataType], *, grows: bool) -> bool:
    """Whether a few numbers suffice for each group of rows of these types.

    If it only grows, no row of a group is ever retracted.
    """
    if call.function in EXTREMES and call.column is not None and not call.distinct:
        return grows and has_order_keys(kinds[call.column])
    return call.function not in ORDERED and not call.distinct


def only_grows(node: Node) -> bool:
    """Whether rows are added, but never retracted."""
    match node:
        case Block():
            timed = [one.name for one in node.plan.sources if not one.is_table]
            for_ever = {name for one in node.lifetimes for name in one.streams}
            return (
                bool(timed)
                and for_ever.issuperset(timed)
                and all(one.length >= FOREVER for one in node.lifetimes)
            )
        case Operation(LastingSpec(length)):
            return length >= FOREVER
        case Operation(ComputeSpec() | UnionAllSpec()):
            return all(map(only_grows, node.inputs))
    return False


def _is_unbounded(node: Node) -> bool:
    """Whether the number of rows that hold grows without bound."""
    match node:
        case Block():
            return any(one.length >= FOREVER for one in node.lifetimes)
        case Operation(LastingSpec(length)):
            return length >= FOREVER
        case Combine() | Operation(ComputeSpec() | UnionAllSpec() | PacedSpec()):
            return any(map(_is_unbounded, node.inputs))
    return False


def _grows(what: str, place: Place) -> SqlWindowError:
    return SqlWindowError(
        f"{what} of a stream that is [UNBOUNDED], and would grow forever",
        place=place,
        detail="COUNT, SUM, AVG, variances, DISTINCT, and MIN and MAX of numbers and times keep a "
        "few numbers for each group",
        hint="write [RANGE 1 DAY], or time windows: TUMBLE(TABLE S, …)",
    )
