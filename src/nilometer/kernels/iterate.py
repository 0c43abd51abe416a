"""Functions of arrays and maps that call a lambda for each item: transform, filter, aggregate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import PredicateError, UnavailableError
from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.expression_types import type_name
from nilometer.kernels.functions.items import Items
from nilometer.kernels.functions.maps import make_maps
from nilometer.model.names import count

_INT: Final = pa.int32()
Kinds: TypeAlias = Sequence[pa.DataType]
TypeOf: TypeAlias = Callable[[int, Kinds], pa.DataType]
"""The result type of a lambda, by its number, for arguments of some types."""
Ask: TypeAlias = Callable[[int, Int64s, Sequence[pa.Array]], pa.Array]
"""The results of a lambda for values that belong to some rows."""


@dataclass(frozen=True)
class Iterated:
    """The operands of such a function in some rows, and how its lambdas are called."""

    columns: Sequence[pa.Array]
    kind: pa.DataType
    parameters: Sequence[int]
    """How many parameters each lambda has."""
    ask: Ask


@dataclass(frozen=True)
class Iteration:
    """A function: the number of operands, its lambdas, its type, and how it runs."""

    operands: int
    parameters: tuple[tuple[int, ...], ...]
    """How many parameters each lambda may have; () as the first: it is optional."""
    gives: Callable[[Kinds, TypeOf], pa.DataType]
    run: Callable[[Iterated], pa.Array]


@dataclass(frozen=True)
class _Flat:
    """The items of all arrays, one after the other."""

    items: Items
    parents: Int64s
    """The row of each item."""
    numbers: Int64s
    """Its number in the array."""

    @classmethod
    def of(cls, column: pa.Array) -> _Flat:
        items = Items(column)
        lengths = items.lengths
        parents = np.repeat(np.arange(len(lengths)), lengths)
        ends = np.cumsum(lengths)
        return cls(items, parents, np.arange(len(parents)) - (ends - lengths)[parents])

    @property
    def places(self) -> pa.Array:
        return pa.array(self.items.starts[self.parents] + self.numbers)

    @property
    def values(self) -> pa.Array:
        return self.items.values.take(self.places)

    @property
    def keys(self) -> pa.Array:
        return self.items.keys.take(self.places)


def iteration_type(
    name: str, kinds: Kinds, parameters: Sequence[int], type_of: TypeOf
) -> pa.DataType:
    """The result type of a function; raises an error if its operands do not fit."""
    function = ITERATIONS[name]
    known = [one for one in function.parameters if one]
    required = len(known) - (() in function.parameters)
    if len(kinds) != function.operands or not required <= len(parameters) <= len(known):
        raise PredicateError(
            f"{name.upper()} got {count(len(kinds) + len(parameters), 'argument')}"
        )
    for taken, named in zip(known, parameters, strict=False):
        if named not in taken:
            raise PredicateError(
                f"the lambda of {name.upper()} has {count(named, 'parameter')}",
                detail=f"it takes {' or '.join(map(str, taken))}",
            )

    def lambda_type(number: int, values: Kinds) -> pa.DataType:
        """As many of the values as are named; a missing lambda changes nothing."""
        if number >= len(parameters):
            return values[0]
        return type_of(number, values[: parameters[number]])

    return function.gives(kinds, lambda_type)


def _items_of(kind: pa.DataType, name: str) -> pa.DataType:
    if not pat.is_list(kind):
        raise UnavailableError(f"{name} of {type_name(kind)} values is not available here")
    return kind.value_type


def _pair_of(kind: pa.DataType, name: str) -> tuple[pa.DataType, pa.DataType]:
    if not pat.is_map(kind):
        raise UnavailableError(f"{name} of {type_name(kind)} values is not available here")
    return kind.key_type, kind.item_type


def _require_condition(kind: pa.DataType, name: str) -> None:
    if not (pat.is_boolean(kind) or pat.is_null(kind)):
        raise PredicateError(f"{name} needs a condition", detail=f"got {type_name(kind)}")


def _true(column: pa.Array) -> Bools:
    truth: Bools = np.asarray(column.cast(pa.bool_()).fill_null(False))
    return truth


def _lists(values: pa.Array, lengths: Int64s, present: Bools, kind: pa.DataType) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    mask = None if present.all() else pa.array(~present)
    return pa.ListArray.from_arrays(pa.array(offsets), values.cast(kind.value_type), mask=mask)


def _evaluated(iterated: Iterated, flat: _Flat) -> pa.Array:
    """The lambda's result for each item, and its number where it takes that."""
    variables = [flat.values, pa.array(flat.numbers).cast(_INT)][: iterated.parameters[0]]
    return iterated.ask(0, flat.parents, variables)


def _transform_type(kinds: Kinds, type_of: TypeOf) -> pa.DataType:
    items = _items_of(kinds[0], "TRANSFORM")
    return pa.list_(type_of(0, [items, _INT]))


def _transform(iterated: Iterated) -> pa.Array:
    flat = _Flat.of(iterated.columns[0])
    results = _evaluated(iterated, flat)
    return _lists(results, flat.items.lengths, flat.items.present, iterated.kind)


def _filter_type(kinds: Kinds, type_of: TypeOf) -> pa.DataType:
    items = _items_of(kinds[0], "FILTER")
    _require_condition(type_of(0, [items, _INT]), "FILTER")
    return kinds[0]


def _filter(iterated: Iterated) -> pa.Array:
    flat = _Flat.of(iterated.columns[0])
    keep = _true(_evaluated(iterated, flat))
    lengths = np.bincount(flat.parents[keep], minlength=len(flat.items.lengths))
    return _lists(flat.values.filter(pa.array(keep)), lengths, flat.items.present, iterated.kind)


def _test_type(kinds: Kinds, type_of: TypeOf) -> pa.DataType:
    _require_condition(type_of(0, [_items_of(kinds[0], "EXISTS or FORALL")]), "a test of items")
    return pa.bool_()


def _test(settles: bool) -> Callable[[Iterated], pa.Array]:
    """Whether a condition holds for any item, or for all: NULL where NULLs leave that open."""

    def run(iterated: Iterated) -> pa.Array:
        flat = _Flat.of(iterated.columns[0])
        answers = _evaluated(iterated, flat).cast(pa.bool_())
        truth, is_null = _true(answers), np.asarray(answers.is_null())
        size = len(flat.items.lengths)
        is_settled = (truth == settles) & ~is_null
        settled = np.bincount(flat.parents[is_settled], minlength=size) > 0
        is_open = np.bincount(flat.parents[is_null], minlength=size) > 0
        unknown = ~flat.items.present | (~settled & is_open)
        return pa.array(settled if settles else ~settled, mask=unknown)

    return run


def _zip_type(kinds: Kinds, type_of: TypeOf) -> pa.DataType:
    return pa.list_(type_of(0, [_items_of(kind, "ZIP_WITH") for kind in kinds]))


def _zip(iterated: Iterated) -> pa.Array:
    """Two arrays item by item, the shorter one padded with NULLs."""
    both = [Items(column) for column in iterated.columns]
    present = both[0].present & both[1].present
    lengths = np.where(present, np.maximum(both[0].lengths, both[1].lengths), 0)
    parents = np.repeat(np.arange(len(lengths)), lengths)
    numbers = np.arange(len(parents)) - (np.cumsum(lengths) - lengths)[parents]
    values = [
        one.values.take(
            pa.array(one.starts[parents] + numbers, mask=numbers >= one.lengths[parents])
        )
        for one in both
    ]
    return _lists(iterated.ask(0, parents, values), lengths, present, iterated.kind)


def _aggregate_type(kinds: Kinds, type_of: TypeOf) -> pa.DataType:
    items, start = _items_of(kinds[0], "AGGREGATE"), kinds[1]
    merged = type_of(0, [start, items])
    if merged != start:
        raise UnavailableError(
            f"AGGREGATE starts with {type_name(start)} and continues with {type_name(merged)}",
            hint="cast the start: aggregate(a, CAST(0 AS BIGINT), (s, x) -> s + x)",
        )
    return type_of(1, [start])


def _aggregate(iterated: Iterated) -> pa.Array:
    """Fold item by item, in all rows that have that many."""
    items, state = Items(iterated.columns[0]), iterated.columns[1]
    for number in range(int(items.lengths.max(initial=0))):
        rows = np.flatnonzero(items.lengths > number)
        value = items.values.take(pa.array(items.starts[rows] + number))
        results = iterated.ask(0, rows, [state.take(pa.array(rows)), value])
        order = np.arange(len(state))
        order[rows] = len(state) + np.arange(len(rows))
        state = pa.concat_arrays([state, results.cast(state.type)]).take(pa.array(order))
    if len(iterated.parameters) > 1:
        state = iterated.ask(1, np.arange(len(state)), [state])
    rows = np.arange(len(state))
    return state.take(pa.array(rows, mask=~items.present)).cast(iterated.kind)


def _map_filter_type(kinds: Kinds, type_of: TypeOf) -> pa.DataType:
    _require_condition(type_of(0, _pair_of(kinds[0], "MAP_FILTER")), "MAP_FILTER")
    return kinds[0]


def _map_filter(iterated: Iterated) -> pa.Array:
    flat = _Flat.of(iterated.columns[0])
    keep = _true(iterated.ask(0, flat.parents, [flat.keys, flat.values]))
    lengths = np.bincount(flat.parents[keep], minlength=len(flat.items.lengths))
    chosen = pa.array(keep)
    keys, values = flat.keys.filter(chosen), flat.values.filter(chosen)
    return make_maps(keys, values, lengths, flat.items.present, iterated.kind)


def _values_type(kinds: Kinds, type_of: TypeOf) -> pa.DataType:
    pair = _pair_of(kinds[0], "TRANSFORM_VALUES")
    return pa.map_(pair[0], type_of(0, pair))


def _keys_type(kinds: Kinds, type_of: TypeOf) -> pa.DataType:
    pair = _pair_of(kinds[0], "TRANSFORM_KEYS")
    return pa.map_(type_of(0, pair), pair[1])


def _transform_map(of_keys: bool) -> Callable[[Iterated], pa.Array]:
    def run(iterated: Iterated) -> pa.Array:
        flat = _Flat.of(iterated.columns[0])
        results = iterated.ask(0, flat.parents, [flat.keys, flat.values])
        keys, values = (results, flat.values) if of_keys else (flat.keys, results)
        return make_maps(keys, values, flat.items.lengths, flat.items.present, iterated.kind)

    return run


_AGGREGATE: Final = Iteration(2, ((), (2,), (1,)), _aggregate_type, _aggregate)
ITERATIONS: Final[Mapping[str, Iteration]] = {
    "transform": Iteration(1, ((1, 2),), _transform_type, _transform),
    "filter": Iteration(1, ((1, 2),), _filter_type, _filter),
    "exists": Iteration(1, ((1,),), _test_type, _test(settles=True)),
    "forall": Iteration(1, ((1,),), _test_type, _test(settles=False)),
    "zip_with": Iteration(2, ((2,),), _zip_type, _zip),
    "aggregate": _AGGREGATE,
    "reduce": _AGGREGATE,
    "map_filter": Iteration(1, ((2,),), _map_filter_type, _map_filter),
    "transform_values": Iteration(1, ((2,),), _values_type, _transform_map(of_keys=False)),
    "transform_keys": Iteration(1, ((2,),), _keys_type, _transform_map(of_keys=True)),
}
