"""Functions of arrays that compare items: the first of equal ones is kept, NULL is smallest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import UnavailableError
from nilometer.kernels.arithmetic import as_type
from nilometer.kernels.arrays import Int64s
from nilometer.kernels.canonical import canonical
from nilometer.kernels.expression_types import common_of_all
from nilometer.kernels.functions.function import Applied, Function, Operand, anything, each
from nilometer.kernels.functions.items import (
    Items,
    array,
    array_or_text,
    make_lists,
    require_comparable,
)
from nilometer.kernels.order_codes import NULL_CODE, order_codes


def _each_array(choose: Callable[[Int64s, Int64s], Any]) -> Callable[[Applied], pa.Array]:
    """Arrays of items selected from each array by their positions and the codes of all items."""

    def run(applied: Applied) -> pa.Array:
        items = Items(applied.columns[0])
        codes, _ = items.codes()
        chosen = [
            choose(items.places(row), codes) if present else None
            for row, present in enumerate(items.present.tolist())
        ]
        return make_lists(items.values, chosen, applied.kind)

    return run


def _distinct(places: Int64s, codes: Int64s) -> Int64s:
    _, firsts = np.unique(codes[places], return_index=True)
    return places[np.sort(firsts)]


def _array_distinct(applied: Applied) -> pa.Array:
    return _each_array(_distinct)(replace(applied, columns=[canonical(applied.columns[0])]))


def _sorted(places: Int64s, codes: Int64s) -> Int64s:
    return places[np.argsort(codes[places], kind="stable")]


def _sorted_nulls_last(places: Int64s, codes: Int64s) -> Int64s:
    own = codes[places]
    return places[np.lexsort((own, own == NULL_CODE))]


def _sort_array(applied: Applied) -> pa.Array:
    """NULLs are smallest."""
    ascending = True if len(applied.columns) < 2 else applied.constants[1]
    if ascending is None:
        return pa.nulls(applied.size, applied.kind)
    if ascending:
        return _each_array(_sorted)(applied)
    return _each_array(lambda places, codes: _sorted(places, -codes))(applied)


def _check_order(value: Any) -> None:
    if not isinstance(value, bool):
        raise UnavailableError("sort_array takes true or false as its second argument")


def _extreme(largest: bool) -> Callable[[Applied], pa.Array]:
    def run(applied: Applied) -> pa.Array:
        items = Items(applied.columns[0])
        codes, _ = items.codes()
        chosen = []
        for row in range(applied.size):
            places = items.places(row)
            places = places[codes[places] != NULL_CODE]
            own = codes[places]
            best = (own.argmax() if largest else own.argmin()) if len(own) else None
            chosen.append(None if best is None else int(places[best]))
        return items.values.take(pa.array(chosen, pa.int64()))

    return run


def _of_two(
    choose: Callable[[Int64s, Int64s, Int64s, Int64s], Int64s],
) -> Callable[[Applied], pa.Array]:
    """An array of items of two arrays, selected by the positions and codes of both."""

    def run(applied: Applied) -> pa.Array:
        first, second = (Items(as_type(one, applied.kind)) for one in applied.columns)
        together = canonical(pa.concat_arrays([first.values, second.values]))
        codes = order_codes(together)
        chosen: list[Int64s | None] = []
        for row in range(applied.size):
            if not (first.present[row] and second.present[row]):
                chosen.append(None)
                continue
            left, right = first.places(row), second.places(row) + len(first.values)
            chosen.append(choose(left, codes[left], right, codes[right]))
        return make_lists(together, chosen, applied.kind)

    return run


def _firsts(places: Int64s, codes: Int64s) -> Int64s:
    _, firsts = np.unique(codes, return_index=True)
    return places[np.sort(firsts)]


def _union(left: Int64s, own: Int64s, right: Int64s, other: Int64s) -> Int64s:
    return _firsts(np.concatenate([left, right]), np.concatenate([own, other]))


def _intersect(left: Int64s, own: Int64s, _: Int64s, other: Int64s) -> Int64s:
    both = np.isin(own, other)
    return _firsts(left[both], own[both])


def _except(left: Int64s, own: Int64s, _: Int64s, other: Int64s) -> Int64s:
    alone = ~np.isin(own, other)
    return _firsts(left[alone], own[alone])


def _overlap(applied: Applied) -> pa.Array:
    kind = common_of_all([one.type for one in applied.columns], "the arrays")
    first, second = (Items(as_type(one, kind)) for one in applied.columns)
    codes = order_codes(pa.concat_arrays([first.values, second.values]))
    overlaps: list[bool | None] = []
    for row in range(applied.size):
        if not (first.present[row] and second.present[row]):
            overlaps.append(None)
            continue
        own = codes[first.places(row)]
        other = codes[second.places(row) + len(first.values)]
        has_null = (own == NULL_CODE).any() or (other == NULL_CODE).any()
        is_common = bool(np.isin(own[own != NULL_CODE], other).any())
        both = len(own) and len(other)
        overlaps.append(True if is_common else None if has_null and both else False)
    return pa.array(overlaps, pa.bool_())


def _boolean_of_lists(operands: Sequence[Operand]) -> pa.DataType:
    _common_list(operands)
    return pa.bool_()


def _compact(places: Int64s, codes: Int64s) -> Int64s:
    known: Int64s = places[codes[places] != NULL_CODE]
    return known


def _reversed(places: Int64s, _: Int64s) -> Int64s:
    return places[::-1]


def _ordered_items(operands: Sequence[Operand]) -> pa.DataType:
    kind = operands[0].kind
    require_comparable(kind.value_type)
    return kind


def _common_list(operands: Sequence[Operand]) -> pa.DataType:
    kind = common_of_all([one.kind for one in operands], "the arrays")
    require_comparable(kind.value_type)
    return kind


def _reverse(applied: Applied) -> pa.Array:
    if pat.is_list(applied.kind):
        return _each_array(_reversed)(applied)
    return each(lambda value: value[::-1])(applied)


FUNCTIONS: Final = {
    "reverse": Function((array_or_text,), lambda o: o[0].kind, _reverse),
    "array_distinct": Function((array,), _ordered_items, _array_distinct),
    "array_compact": Function((array,), _ordered_items, _each_array(_compact)),
    "array_min": Function((array,), lambda o: _ordered_items(o).value_type, _extreme(False)),
    "array_max": Function((array,), lambda o: _ordered_items(o).value_type, _extreme(True)),
    "sort_array": Function(
        (array, anything), _ordered_items, _sort_array, optional=1, literals={1: _check_order}
    ),
    "array_sort": Function((array,), _ordered_items, _each_array(_sorted_nulls_last)),
    "array_union": Function((array, array), _common_list, _of_two(_union)),
    "array_intersect": Function((array, array), _common_list, _of_two(_intersect)),
    "array_except": Function((array, array), _common_list, _of_two(_except)),
    "arrays_overlap": Function((array, array), _boolean_of_lists, _overlap),
}
