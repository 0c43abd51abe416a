"""GROUP BY: a row per group with values of all its rows, whenever it changes.

The state of a group is exact totals, and the values themselves where their order matters.
All output is a function of this state, so a row is retracted exactly as it was emitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import InternalError, PredicateError
from nilometer.kernels.aggregate_types import aggregate_type
from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.exact_sums import MOST_COPIES
from nilometer.kernels.gather import take
from nilometer.kernels.group_instants import group_instants
from nilometer.kernels.order_keys import has_order_keys, values_of_keys
from nilometer.kernels.row_groups import row_groups
from nilometer.kernels.row_ids import identify_rows
from nilometer.model.expressions import Expression
from nilometer.model.time import EARLIEST
from nilometer.operators.aggregate_answer import GroupStates, answer_changes
from nilometer.operators.aggregate_arguments import (
    ArgumentEvents,
    ArgumentRef,
    GroupedChanges,
    argument_events,
    argument_of,
    distinct_events,
)
from nilometer.operators.aggregate_orders import (
    ORDERED,
    OrderedArgument,
    OrderRef,
    order_argument,
    order_ref,
)
from nilometer.operators.aggregate_results import COVARIANCES, POWER, SUMMED, SumResults
from nilometer.operators.aggregate_totals import ROWS, RunningTotals, Totals, extreme_name
from nilometer.operators.change_operator import (
    StoredChunks,
    diffs_of,
    no_changes,
    row_columns,
    times_of,
)
from nilometer.operators.change_specs import AggregateCall, AggregateFunction
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.content import Content, NoContentError
from nilometer.operators.group_table import Groups, GroupTable
from nilometer.operators.share import ROUTE, Columns, Share, routes
from nilometer.operators.value_table import ValueTable

_NUMBER: Final = "number"
EXTREMES: Final = (AggregateFunction.MIN, AggregateFunction.MAX)
"""Functions that need only one value of state, where no row is ever retracted."""


@dataclass(frozen=True)
class AggregateSpec:
    """Groups by the first columns of the input; a test and values of their keys and calls."""

    keys: int
    input_types: tuple[pa.DataType, ...]
    calls: tuple[AggregateCall, ...]
    test: Expression | None
    values: tuple[Expression, ...]
    types: tuple[pa.DataType, ...]
    """The types of the output columns, without time and count."""
    names: tuple[str, ...] = ()
    """The names of keys and calls."""
    each_instant: bool = False
    """Whether rows hold for one instant each: groups need no state, and none is retracted."""
    only_grows: bool = False
    """Whether no row is ever retracted: MIN and MAX keep one value for each group."""
    routed_by: Columns = None
    """The columns by which rows are together in buckets."""

    def start(self, store: ChunkStore) -> AggregateOperator:
        """The running operator, without any state yet."""
        return AggregateOperator(self, store)


class AggregateOperator:
    """Keeps totals of all groups, and the values of arguments whose order matters."""

    def __init__(self, spec: AggregateSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._groups = GroupTable((), store)
        self._arguments: dict[ArgumentRef, set[AggregateFunction]] = {}
        for call in spec.calls:
            if call.column is not None:
                self._arguments.setdefault(argument_of(call), set()).add(call.function)
        refs = [order_ref(call, spec.input_types) for call in spec.calls if self._is_ordered(call)]
        self._orders = {ref: ValueTable(ref.kind, store, ref.order) for ref in refs}
        self._copies = {ref: GroupTable((), store) for ref in self._arguments if ref.distinct}
        self._next_number = 1
        self._opened = spec.keys > 0 or spec.each_instant

    @property
    def stored(self) -> Sequence[StoredChunks]:
        """All state that it keeps in the store."""
        return tuple(self._tables().values())

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        chunks = {name: [r.to_json() for r in t.refs] for name, t in self._tables().items()}
        return {"chunks": chunks, "next number": self._next_number, "opened": self._opened}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        for name, table in self._tables().items():
            table.restore(ChunkRef(**ref) for ref in snapshot["chunks"][name])
        self._next_number = snapshot["next number"]
        self._opened = snapshot["opened"]

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The changes strictly before a frontier, given those of the input."""
        changes = inputs[0]
        if not diffs_of(changes).all():
            changes = changes.take(pa.array(np.flatnonzero(diffs_of(changes))))
        if self._opened and not len(changes):
            return no_changes(self._spec.types)
        if self._spec.only_grows and (diffs_of(changes) < 0).any():
            raise _taken_back()
        period, firsts = self._period(changes)
        initial = {} if self._spec.each_instant else self._groups.lookup(period.ids)
        self._check_size(period, initial.get(ROWS))
        route = self._routes(period, firsts)
        events = self._events(period, route)
        totals = self._totals(period, initial, events)
        if (totals[ROWS] < 0).any():
            raise _taken_back()
        numbers = self._numbers(initial, len(period.ids))
        orders = self._ordered(period, numbers, totals, events)
        sums = SumResults(totals)
        answer = GroupStates(
            [take(column, firsts) for column in period.columns[: self._spec.keys]],
            self._results(totals, orders, sums),
            self._exists(totals),
        )
        for bad, error in sums.refused:
            answer.leave_out(bad, error, period.instants, self._spec.names)
        if not self._spec.each_instant:
            self._keep(period, totals, numbers, route)
        self._opened = True
        spec = self._spec
        values = list(zip(spec.values, spec.types, strict=True))
        return answer_changes(period.instants, answer, spec.test, values, spec.names)

    def _period(self, changes: pa.RecordBatch) -> tuple[GroupedChanges, Int64s]:
        """The period, and the first change of each group."""
        columns, times, diffs = row_columns(changes), times_of(changes), diffs_of(changes)
        if self._spec.keys or self._spec.each_instant:
            keys = columns[: self._spec.keys]
            if self._spec.each_instant:  # the groups of different instants are different groups
                keys = [pa.array(times), *keys]
            grouped = row_groups(keys, len(changes))
            groups, ids, firsts = grouped.numbers, grouped.ids, grouped.firsts
        else:
            groups, ids = np.zeros(len(changes), np.int64), identify_rows([], 1)
            firsts = np.zeros(0, np.int64)
        if self._opened:
            instants = group_instants(groups, times)
        else:  # the one group has always had a row
            instants = group_instants(np.append(groups, 0), np.append(times, EARLIEST))
        return GroupedChanges(columns, times, diffs, groups, ids, instants), firsts

    def _check_size(self, period: GroupedChanges, rows: Int64s | None) -> None:
        held = 0 if rows is None else int(rows.max(initial=0))
        if held + int(np.abs(period.diffs).sum()) >= MOST_COPIES:
            raise PredicateError(
                "a group has too many rows for exact sums",
                detail=f"at most {MOST_COPIES:,} are allowed",
                hint="shorten the window, or group by more columns",
            )

    def _routes(self, period: GroupedChanges, firsts: Int64s) -> Int64s | None:
        """The routes of groups, if they are known and kept."""
        if self._spec.each_instant or not self._spec.routed_by:
            return None
        keys = [take(column, firsts) for column in period.columns[: self._spec.keys]]
        return routes(keys, self._spec.routed_by)

    def _events(
        self, period: GroupedChanges, route: Int64s | None
    ) -> dict[ArgumentRef, ArgumentEvents]:
        """The values added and removed, for every argument of a call."""
        return {
            ref: distinct_events(period, ref.column, self._kept(self._copies[ref]), route)
            if ref.distinct
            else argument_events(period, ref.column)
            for ref in self._arguments
        }

    def _kept(self, table: GroupTable) -> GroupTable | None:
        """A table to update, if any state is kept."""
        return None if self._spec.each_instant else table

    def _totals(
        self,
        period: GroupedChanges,
        initial: dict[str, Int64s],
        events: dict[ArgumentRef, ArgumentEvents],
    ) -> Totals:
        running = RunningTotals(period.instants, initial)
        running.add(ROWS, period.states, period.diffs)
        for ref, mine in events.items():
            running.add_counts(ref, mine, period)
            functions = self._arguments[ref]
            for function in functions:
                if self._is_extreme(function, ref.column):
                    running.add_extreme(ref, mine, largest=function is AggregateFunction.MAX)
            if functions.intersection(COVARIANCES):
                running.add_pairs(ref, mine)
            if functions.intersection(SUMMED) and not pat.is_null(mine.values.type):
                power = max(POWER.get(function, 1) for function in functions)
                running.add_numbers(ref, mine, power=power)
        return running.totals()

    def _numbers(self, initial: dict[str, Int64s], groups: int) -> Int64s:
        """The numbers that identify the groups in value tables; new groups get new ones."""
        numbers = initial.get(_NUMBER, np.zeros(groups, np.int64)).copy()
        if self._orders:
            new = np.flatnonzero(numbers == 0)
            numbers[new] = self._next_number + np.arange(len(new))
            self._next_number += len(new)
        return numbers

    def _ordered(
        self,
        period: GroupedChanges,
        numbers: Int64s,
        totals: Totals,
        events: dict[ArgumentRef, ArgumentEvents],
    ) -> dict[OrderRef, OrderedArgument]:
        return {
            ref: order_argument(
                period.instants,
                numbers,
                totals.count(ref.argument),
                events[ref.argument].as_type(ref.kind),
                table,
                keep=not self._spec.each_instant,
            )
            for ref, table in self._orders.items()
        }

    def _results(
        self, totals: Totals, orders: dict[OrderRef, OrderedArgument], sums: SumResults
    ) -> list[pa.Array]:
        """The results of all calls in every state."""
        types = self._spec.input_types
        results = []
        for call in self._spec.calls:
            if call.column is None:
                results.append(pa.array(totals[ROWS]))
            elif self._is_extreme(call.function, call.column):
                results.append(self._extreme(call, totals))
            elif self._is_ordered(call):
                results.append(orders[order_ref(call, types)].result(call))
            else:
                wanted = aggregate_type(call, types)
                ref = argument_of(call)
                results.append(sums.result(call.function, ref, types[call.column], wanted))
        return results

    def _is_ordered(self, call: AggregateCall) -> bool:
        """Whether a call needs the values themselves; not if all of them are NULL."""
        if call.column is None or pat.is_null(self._spec.input_types[call.column]):
            return False
        return call.function in ORDERED and not self._is_extreme(call.function, call.column)

    def _is_extreme(self, function: AggregateFunction, column: int) -> bool:
        """Whether a call needs only the smallest or largest value so far."""
        return (
            self._spec.only_grows
            and function in EXTREMES
            and has_order_keys(self._spec.input_types[column])
        )

    def _extreme(self, call: AggregateCall, totals: Totals) -> pa.Array:
        assert call.column is not None
        ref, kind = argument_of(call), self._spec.input_types[call.column]
        name = extreme_name(ref, largest=call.function is AggregateFunction.MAX)
        return values_of_keys(totals[name], kind, totals.count(ref) > 0)

    def _exists(self, totals: Totals) -> Bools:
        """The states in which a group has a row. The one group without keys always has one."""
        if self._spec.keys or self._spec.each_instant:
            exists: Bools = totals[ROWS] > 0
            return exists
        exists = np.ones(totals.size, np.bool_)
        exists[0] = self._opened
        return exists

    def content(self, marks: Sequence[int]) -> Content:
        """What its state says; of values in order it also says which groups came first."""
        if self._orders:
            raise NoContentError("values in order")
        copies = [(ref.label, table.content()) for ref, table in self._copies.items()]
        return self._opened, self._groups.content(), tuple(copies)

    def take_over(self, old: Sequence[AggregateOperator], shares: Sequence[Share]) -> None:
        """Take over, without any state yet, the groups that belong to this bucket."""
        share = shares[0].require()
        self._groups.take_over([one._groups for one in old], share, _NUMBER)
        numbers = self._groups.contents().value(_NUMBER)
        for ref, table in self._orders.items():
            table.take_over([one._orders[ref] for one in old], numbers)
        for argument, copies in self._copies.items():
            copies.take_over([one._copies[argument] for one in old], share)
        self._next_number = max(one._next_number for one in old) * len(old)
        self._opened = all(one._opened for one in old)

    def _keep(
        self, period: GroupedChanges, totals: Totals, numbers: Int64s, route: Int64s | None
    ) -> None:
        lasts = period.instants.lasts
        values = {
            name: total[lasts]
            for name, total in totals.values.items()
            if name not in (_NUMBER, ROUTE)
        }
        alive = totals[ROWS][lasts] > 0
        values[_NUMBER] = np.where(alive, numbers, 0)
        if route is not None:
            values[ROUTE] = np.where(alive, route, 0)
        self._groups.update(Groups(period.ids, (), values))

    def _tables(self) -> dict[str, GroupTable | ValueTable]:
        return {
            "groups": self._groups,
            **{f"values {ref.label}": table for ref, table in self._orders.items()},
            **{f"copies {ref.label}": table for ref, table in self._copies.items()},
        }


def _taken_back() -> InternalError:
    return InternalError(
        "GROUP BY was told to remove rows that are not there",
        hint="please report this with the query",
    )
