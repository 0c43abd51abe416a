"""Functions that build maps, and take them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import PredicateError, UnavailableError
from nilometer.kernels.arithmetic import as_type
from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.expression_types import common_of_all, type_name
from nilometer.kernels.functions.function import Applied, Function, Operand, anything
from nilometer.kernels.functions.items import Items, array, mapping, require_comparable
from nilometer.kernels.order_codes import order_codes

_ONE_KEY: Final = "a map has each key once"


def make_maps(
    keys: pa.Array, values: pa.Array, lengths: Int64s, present: Bools, kind: pa.DataType
) -> pa.Array:
    """Maps of keys and values, so many per row; an error if a key is NULL or repeated."""
    keys, values = as_type(keys, kind.key_type), as_type(values, kind.item_type)
    if keys.null_count:
        raise PredicateError("a key of a map is NULL", hint="filter it out first")
    owners = np.repeat(np.arange(len(lengths)), lengths)
    pairs = np.stack([owners, order_codes(keys)], axis=1)
    if len(np.unique(pairs, axis=0)) < len(pairs):
        raise PredicateError("a map has the same key twice", detail=_ONE_KEY)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    missing = np.append(~present, False)
    starts = pa.array(offsets, mask=missing if missing.any() else None)
    return pa.MapArray.from_arrays(starts, keys, values, type=kind)


def _map_type(operands: Sequence[Operand]) -> pa.DataType:
    kinds = [one.kind for one in operands]
    if not kinds or len(kinds) % 2:
        raise UnavailableError(
            "MAP takes keys and values alternately", hint="write map('a', 1, 'b', 2)"
        )
    keys = common_of_all(kinds[::2], "the keys of a map")
    require_comparable(keys)
    return pa.map_(keys, common_of_all(kinds[1::2], "the values of a map"))


def _map(applied: Applied) -> pa.Array:
    size, pairs = applied.size, len(applied.columns) // 2
    order = pa.array((np.arange(pairs) * size + np.arange(size)[:, None]).ravel())
    keys, values = (
        pa.concat_arrays([as_type(one, kind) for one in applied.columns[first::2]]).take(order)
        for first, kind in enumerate((applied.kind.key_type, applied.kind.item_type))
    )
    lengths = np.full(size, pairs)
    return make_maps(keys, values, lengths, np.ones(size, np.bool_), applied.kind)


def _of_arrays_type(operands: Sequence[Operand]) -> pa.DataType:
    keys, values = (one.kind.value_type for one in operands)
    require_comparable(keys)
    return pa.map_(keys, values)


def _of_arrays(applied: Applied) -> pa.Array:
    keys, values = (Items(column) for column in applied.columns)
    present = applied.present()
    if bool((present & (keys.lengths != values.lengths)).any()):
        raise PredicateError("a map needs as many keys as values")
    lengths = np.where(present, keys.lengths, 0)
    taken = [one.values.take(_places(one, lengths)) for one in (keys, values)]
    return make_maps(taken[0], taken[1], lengths, present, applied.kind)


def _places(items: Items, lengths: Int64s) -> pa.Array:
    """The positions of the first `lengths` items of each row."""
    parents = np.repeat(np.arange(len(lengths)), lengths)
    numbers = np.arange(len(parents)) - (np.cumsum(lengths) - lengths)[parents]
    return pa.array(items.starts[parents] + numbers)


def _entries_type(operands: Sequence[Operand]) -> pa.DataType:
    kind = operands[0].kind
    return pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))


def _entries(applied: Applied) -> pa.Array:
    items = Items(applied.columns[0])
    places = _places(items, items.lengths)
    pairs = [items.keys.take(places), items.values.take(places)]
    entry = applied.kind.value_type
    entries = pa.StructArray.from_arrays(pairs, fields=[entry.field(0), entry.field(1)])
    offsets = np.concatenate([[0], np.cumsum(items.lengths)]).astype(np.int32)
    mask = None if items.present.all() else pa.array(~items.present)
    return pa.ListArray.from_arrays(pa.array(offsets), entries, mask=mask).cast(applied.kind)


def _of_entries_type(operands: Sequence[Operand]) -> pa.DataType:
    entry = operands[0].kind.value_type
    if not pat.is_struct(entry) or entry.num_fields != 2:
        raise UnavailableError(
            f"MAP_FROM_ENTRIES of {type_name(operands[0].kind)} values is not available here"
        )
    require_comparable(entry.field(0).type)
    return pa.map_(entry.field(0).type, entry.field(1).type)


def _of_entries(applied: Applied) -> pa.Array:
    """A map of entries; NULL if an entry is."""
    items = Items(applied.columns[0])
    all_entries = items.values.take(_places(items, items.lengths))
    owners = np.repeat(np.arange(applied.size), items.lengths)
    present = items.present.copy()
    present[owners[np.asarray(all_entries.is_null())]] = False
    lengths = np.where(present, items.lengths, 0)
    entries = items.values.take(_places(items, lengths))
    keys, values = entries.field(0), entries.field(1)
    return make_maps(keys, values, lengths, present, applied.kind)


def _concat_type(operands: Sequence[Operand]) -> pa.DataType:
    kinds = {one.kind for one in operands}
    if len(kinds) > 1:
        raise UnavailableError("MAP_CONCAT of maps of different types is not available here")
    require_comparable(operands[0].kind.key_type)
    return operands[0].kind


def _concat(applied: Applied) -> pa.Array:
    present, parts = applied.present(), [Items(column) for column in applied.columns]
    lengths = [np.where(present, one.lengths, 0) for one in parts]
    places = [_places(one, many) for one, many in zip(parts, lengths, strict=True)]
    keys = [one.keys.take(at) for one, at in zip(parts, places, strict=True)]
    values = [one.values.take(at) for one, at in zip(parts, places, strict=True)]
    owners = np.concatenate([np.repeat(np.arange(applied.size), many) for many in lengths])
    order = pa.array(np.argsort(owners, kind="stable"))
    total = np.sum(lengths, axis=0)
    together = [pa.concat_arrays(part).take(order) for part in (keys, values)]
    return make_maps(together[0], together[1], total, present, applied.kind)


FUNCTIONS: Final = {
    "map": Function((anything, anything), _map_type, _map, several=True),
    "map_from_arrays": Function((array, array), _of_arrays_type, _of_arrays),
    "map_entries": Function((mapping,), _entries_type, _entries),
    "map_from_entries": Function((array,), _of_entries_type, _of_entries),
    "map_concat": Function((mapping,), _concat_type, _concat, several=True),
}
