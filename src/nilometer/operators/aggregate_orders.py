"""MIN, MAX, percentiles, lists and bits: results that need the values in every state of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nilometer.kernels.arrays import Bools, Int64s, as_int64
from nilometer.kernels.exact_sums import Doubles
from nilometer.kernels.group_instants import GroupInstants
from nilometer.kernels.moving_ranks import Ranks, ValueEvents, values_at_ranks
from nilometer.kernels.state_values import all_events, values_in_states
from nilometer.operators.aggregate_arguments import ArgumentEvents, ArgumentRef, argument_of
from nilometer.operators.change_specs import AggregateCall, AggregateFunction, SortKey
from nilometer.operators.value_table import Content, ValueTable

_WHOLE = (
    AggregateFunction.LIST,
    AggregateFunction.SET,
    AggregateFunction.TEXT,
    AggregateFunction.MODE,
)
"""Functions whose result contains all values of a group."""
_PERCENTILES = (AggregateFunction.PERCENTILE, AggregateFunction.PERCENTILE_DISC)
"""Functions whose result is a double for any argument."""
_DISCRETE = (AggregateFunction.PERCENTILE_DISC, AggregateFunction.PERCENTILE_APPROX)
_BITS = (AggregateFunction.BIT_AND, AggregateFunction.BIT_OR, AggregateFunction.BIT_XOR)
_BY = (AggregateFunction.MIN_BY, AggregateFunction.MAX_BY)
_LARGEST = (AggregateFunction.MAX, AggregateFunction.MAX_BY)
ORDERED = (
    AggregateFunction.MIN,
    AggregateFunction.MAX,
    *_PERCENTILES,
    AggregateFunction.PERCENTILE_APPROX,
    *_BY,
    *_BITS,
    *_WHOLE,
)
"""Functions that need the values themselves, not only their sums."""


@dataclass(frozen=True, slots=True)
class OrderRef:
    """An argument, and the type and the keys by which its values are ordered."""

    argument: ArgumentRef
    kind: pa.DataType
    order: tuple[SortKey, ...] = ()

    @property
    def label(self) -> str:
        by = "".join(f" by {key}" for key in self.order)
        return f"{self.argument.label} as {self.kind}{by}"


def order_ref(call: AggregateCall, types: Sequence[pa.DataType]) -> OrderRef:
    """The argument that a call orders. Percentiles are doubles."""
    argument = argument_of(call)
    is_double = call.function in _PERCENTILES
    kind = pa.float64() if is_double else types[argument.column]
    return OrderRef(argument, kind, call.order)


@dataclass(frozen=True)
class OrderedArgument:
    """The values of groups before a period, and those added and removed in it."""

    instants: GroupInstants
    counts: Int64s
    """How many values there are in every state."""
    content: Content
    events: ValueEvents

    def result(self, call: AggregateCall) -> pa.Array:
        """The results of a call in every state."""
        some = self.counts > 0
        last = np.maximum(self.counts, 1) - 1
        if call.function is AggregateFunction.PERCENTILE:
            assert call.fraction is not None
            return self._percentile(last, call.fraction, some)
        if call.function in _DISCRETE:
            assert call.fraction is not None
            return self._value_at(call.fraction, call.reverse, some)
        if call.function in _WHOLE:
            return self._whole(call)
        if call.function in _BITS:
            return self._bits(call.function, some)
        some = self.counts > call.rank
        ranks = np.minimum(call.rank, last)
        if call.function in _LARGEST:
            ranks = last - ranks
        keys, _ = self._values(Ranks(self.counts, ranks, ranks, spread=0.0))
        values = self.content.values(keys, some)
        return _last_field(values) if call.function in _BY else values

    def _whole(self, call: AggregateCall) -> pa.Array:
        """The results that contain all values, in every state."""
        held = values_in_states(self.instants, self.content.runs, self.events)
        if call.function is AggregateFunction.MODE:
            keys, some = held.most_frequent()
            return self.content.values(keys, some)
        if call.function is AggregateFunction.SET or call.distinct:
            held = held.distinct()
        shown = held.repeated(reverse=call.reverse)
        values = self.content.values(shown.values, np.ones(len(shown.values), np.bool_))
        if call.function is not AggregateFunction.SET:
            values = _last_field(values)
        offsets = pa.array(shown.offsets, pa.int32())
        lists = pa.ListArray.from_arrays(offsets, values)
        if call.function is not AggregateFunction.TEXT:
            return lists
        joined = pc.binary_join(lists.cast(pa.list_(pa.string())), call.separator)
        return pc.if_else(
            pa.array(np.diff(shown.offsets) > 0), joined, pa.scalar(None, pa.string())
        )

    def _bits(self, function: AggregateFunction, some: Bools) -> pa.Array:
        """Bits that all values have, that any has, or that an odd number of them has."""
        states, keys, counts = all_events(self.instants, self.content.runs, self.events)
        values = self.content.values(keys, np.ones(len(keys), np.bool_))
        numbers = as_int64(values.cast(pa.int64()))
        bits = np.zeros(len(some), np.int64)
        for bit in np.int64(1) << np.arange(64):
            has = np.flatnonzero(numbers & bit)
            if not len(has):
                continue
            changes = self.instants.add_up(states[has], counts[has])
            times = self.instants.running(changes, changes[self.instants.firsts])
            match function:
                case AggregateFunction.BIT_AND:
                    is_set = times == self.counts
                case AggregateFunction.BIT_OR:
                    is_set = times > 0
                case _:
                    is_set = times % 2 == 1
            bits[is_set] |= bit
        return pa.array(bits, mask=None if some.all() else ~some).cast(values.type)

    def _percentile(self, last: Int64s, fraction: float, some: Bools) -> pa.Array:
        """Between two values it is interpolated, as Spark does."""
        places = last * fraction
        lows, highs = np.floor(places).astype(np.int64), np.ceil(places).astype(np.int64)
        spread = fraction * (1 - fraction)
        low_keys, high_keys = self._values(Ranks(self.counts, lows, highs, spread))
        low, high = self._doubles(low_keys), self._doubles(high_keys)
        with np.errstate(invalid="ignore", over="ignore"):
            between = (highs - places) * low + (places - lows) * high
        result = np.where(low_keys == high_keys, low, between)
        return pa.array(result, mask=None if some.all() else ~some)

    def _value_at(self, fraction: float, reverse: bool, some: Bools) -> pa.Array:
        """The first value that is not less than this fraction of all."""
        counts = np.maximum(self.counts, 1)
        upto = counts - np.floor(counts - fraction * counts).astype(np.int64)
        ranks = np.maximum(upto, 1) - 1
        ranks = counts - 1 - ranks if reverse else ranks
        keys, _ = self._values(Ranks(self.counts, ranks, ranks, spread=fraction * (1 - fraction)))
        return self.content.values(keys, some)

    def _values(self, ranks: Ranks) -> tuple[Int64s, Int64s]:
        return values_at_ranks(self.instants, self.content.runs, self.events, ranks)

    def _doubles(self, keys: Int64s) -> Doubles:
        doubles: Doubles = self.content.values(keys, np.ones(len(keys), np.bool_)).to_numpy()
        return doubles


def _last_field(structs: pa.Array) -> pa.Array:
    """The values in structs, behind what orders them."""
    return pc.struct_field(structs, [structs.type.num_fields - 1])


def order_argument(
    instants: GroupInstants,
    numbers: Int64s,
    counts: Int64s,
    events: ArgumentEvents,
    table: ValueTable,
    *,
    keep: bool = True,
) -> OrderedArgument:
    """An argument in a period; the table is updated at its end, unless asked not to.

    The numbers are those of the groups in the table; the values are of its type.
    """
    content = table.content(numbers, events.values)
    if keep:
        table.update(numbers[events.groups], events.values, events.diffs)
    mine = ValueEvents(events.states, events.groups, content.keys, events.diffs)
    return OrderedArgument(instants, counts, content, mine)
