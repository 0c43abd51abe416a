"""Functions of arrays and maps, and of their items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import PredicateError, UnavailableError
from nilometer.kernels.arithmetic import as_type
from nilometer.kernels.expression_types import common_of_all, common_type, type_name
from nilometer.kernels.functions.function import (
    MOST,
    Applied,
    Function,
    Operand,
    anything,
    int32,
    plain_text,
    too_large,
)
from nilometer.kernels.functions.items import (
    Items,
    array,
    array_or_map,
    array_or_text,
    make_lists,
    mapping,
    require_comparable,
)
from nilometer.kernels.functions.texts import concat_texts
from nilometer.kernels.order_codes import NULL_CODE, order_codes

_INT: Final = pa.int32()


def _first_kind(operands: Sequence[Operand]) -> pa.DataType:
    return operands[0].kind


def _item_kind(operands: Sequence[Operand]) -> pa.DataType:
    kind = operands[0].kind
    return kind.item_type if pat.is_map(kind) else kind.value_type


def _size(applied: Applied) -> pa.Array:
    items = Items(applied.columns[0])
    return pa.array(items.lengths, mask=~items.present).cast(_INT)


def _item_at(first: int, *, strict: bool) -> Callable[[Applied], pa.Array]:
    """The item at an index that starts at `first`; from 1, negative ones count from the end."""

    def run(applied: Applied) -> pa.Array:
        column, numbers = applied.columns
        if pat.is_map(column.type):
            return _value_of(applied)
        items = Items(column)
        chosen: list[int | None] = []
        for row, number in enumerate(numbers.to_pylist()):
            if number is None or not items.present[row]:
                chosen.append(None)
                continue
            length = int(items.lengths[row])
            place = length + number if first == 1 and number < 0 else number - first
            is_there = 0 <= place < length
            if (first == 1 and number == 0) or (strict and not is_there):
                raise _no_item(number, length, first)
            chosen.append(int(items.starts[row]) + place if is_there else None)
        return items.values.take(pa.array(chosen, pa.int64()))

    return run


def _no_item(number: int, length: int, first: int) -> PredicateError:
    return PredicateError(
        f"there is no item {number} in an array of {length}",
        hint="get(a, i) returns NULL instead"
        if first == 0
        else "try_element_at(a, i) returns NULL instead",
    )


def _value_of(applied: Applied) -> pa.Array:
    """The value of a key in a map; NULL if it is missing."""
    column, wanted = applied.columns
    items = Items(column)
    codes = order_codes(pa.concat_arrays([items.keys, wanted.cast(items.keys.type)]))
    keys, targets = codes[: len(items.keys)], codes[len(items.keys) :]
    chosen: list[int | None] = []
    for row in range(applied.size):
        places = items.places(row)
        same = places[keys[places] == targets[row]] if targets[row] != NULL_CODE else []
        chosen.append(int(same[-1]) if len(same) else None)
    return items.values.take(pa.array(chosen, pa.int64()))


def _item_type(operands: Sequence[Operand]) -> pa.DataType:
    kind, index_kind = operands[0].kind, operands[1].kind
    wanted = kind.key_type if pat.is_map(kind) else pa.int32()
    fits = pat.is_null(index_kind) or common_type(wanted, index_kind) == wanted
    if not fits and not (pat.is_list(kind) and pat.is_signed_integer(index_kind)):
        raise UnavailableError(
            f"an item of {type_name(kind)} by {type_name(index_kind)} is not available here"
        )
    return _item_kind(operands)


def _element_type(operands: Sequence[Operand]) -> pa.DataType:
    kind, element = operands[0].kind, operands[1].kind
    common = common_type(kind.value_type, element)
    if common is None or (common != kind.value_type and not pat.is_null(element)):
        raise UnavailableError(
            f"looking for {type_name(element)} in {type_name(kind)} is not available here"
        )
    require_comparable(kind.value_type)
    return kind


def _contains(applied: Applied) -> pa.Array:
    """Whether an array contains a value; NULL if it is not found but the array has NULLs."""
    items = Items(applied.columns[0])
    codes, targets = items.codes(applied.columns[1])
    contains: list[bool | None] = []
    for row in range(applied.size):
        if not items.present[row] or targets[row] == NULL_CODE:
            contains.append(None)
            continue
        own = codes[items.places(row)]
        is_there = bool((own == targets[row]).any())
        contains.append(True if is_there else None if (own == NULL_CODE).any() else False)
    return pa.array(contains, pa.bool_())


def _boolean_of_element(operands: Sequence[Operand]) -> pa.DataType:
    _element_type(operands)
    return pa.bool_()


def _position(applied: Applied) -> pa.Array:
    items = Items(applied.columns[0])
    codes, targets = items.codes(applied.columns[1])
    positions: list[int | None] = []
    for row in range(applied.size):
        if not items.present[row] or targets[row] == NULL_CODE:
            positions.append(None)
            continue
        same = np.flatnonzero(codes[items.places(row)] == targets[row])
        positions.append(int(same[0]) + 1 if len(same) else 0)
    return pa.array(positions, pa.int64())


def _remove(applied: Applied) -> pa.Array:
    items = Items(applied.columns[0])
    codes, targets = items.codes(applied.columns[1])
    chosen: list[Any] = []
    for row in range(applied.size):
        if not items.present[row] or targets[row] == NULL_CODE:
            chosen.append(None)
            continue
        places = items.places(row)
        chosen.append(places[codes[places] != targets[row]])
    return make_lists(items.values, chosen, applied.kind)


def _added(in_front: bool) -> Callable[[Applied], pa.Array]:
    def run(applied: Applied) -> pa.Array:
        column, more = applied.columns
        items = Items(column)
        together = pa.concat_arrays([items.values, more.cast(items.values.type)])
        chosen: list[Any] = []
        for row in range(applied.size):
            places, last = items.places(row), [len(items.values) + row]
            parts = (last, places) if in_front else (places, last)
            chosen.append(np.concatenate(parts) if items.present[row] else None)
        return make_lists(together, chosen, applied.kind)

    return run


def _slice(applied: Applied) -> pa.Array:
    items = Items(applied.columns[0])
    starts, lengths = (column.to_pylist() for column in applied.columns[1:])
    chosen: list[Any] = []
    for row, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        if not items.present[row] or start is None or length is None:
            chosen.append(None)
            continue
        if start == 0 or length < 0:
            raise PredicateError(
                "slice counts from 1, or from -1 at the end", detail=f"got {start}, {length}"
            )
        places = items.places(row)
        first = start - 1 if start > 0 else len(places) + start
        chosen.append(places[first : first + length] if 0 <= first < len(places) else places[:0])
    return make_lists(items.values, chosen, applied.kind)


def _array(applied: Applied) -> pa.Array:
    item = applied.kind.value_type
    columns = [as_type(column, item) for column in applied.columns]
    size = applied.size
    together = pa.concat_arrays(columns) if columns else pa.array([], item)
    rows = [[row + number * size for number in range(len(columns))] for row in range(size)]
    return make_lists(together, rows, applied.kind)


def _array_type(operands: Sequence[Operand]) -> pa.DataType:
    if not operands:
        return pa.list_(pa.null())
    return pa.list_(common_of_all([one.kind for one in operands], "the items of the array"))


def _join(applied: Applied) -> pa.Array:
    rows = zip(*(column.to_pylist() for column in applied.columns), strict=True)
    texts: list[str | None] = []
    for values, separator, *instead in rows:
        if values is None or separator is None or instead == [None]:
            texts.append(None)
            continue
        shown = [instead[0] if one is None and instead else one for one in values]
        joined = separator.join(one for one in shown if one is not None)
        if len(joined) > 4 * MOST:
            raise too_large("array_join")
        texts.append(joined)
    return pa.array(texts, pa.string())


def _texts(kind: pa.DataType) -> pa.DataType | None:
    is_texts = pat.is_list(kind) and pat.is_string(kind.value_type)
    return pa.list_(pa.string()) if is_texts else None


def _keys(applied: Applied) -> pa.Array:
    return _of_map(applied, "keys")


def _values(applied: Applied) -> pa.Array:
    return _of_map(applied, "values")


def _of_map(applied: Applied, part: str) -> pa.Array:
    items = Items(applied.columns[0])
    chosen = [items.places(row) if items.present[row] else None for row in range(applied.size)]
    return make_lists(items.keys if part == "keys" else items.values, chosen, applied.kind)


def _contains_key(applied: Applied) -> pa.Array:
    column, wanted = applied.columns
    items = Items(column)
    codes = order_codes(pa.concat_arrays([items.keys, wanted.cast(items.keys.type)]))
    keys, targets = codes[: len(items.keys)], codes[len(items.keys) :]
    contains = [
        bool((keys[items.places(row)] == targets[row]).any())
        if items.present[row] and targets[row] != NULL_CODE
        else None
        for row in range(applied.size)
    ]
    return pa.array(contains, pa.bool_())


def _key_asked(operands: Sequence[Operand]) -> pa.DataType:
    _item_type(operands)
    return pa.bool_()


def _flatten(applied: Applied) -> pa.Array:
    outer = Items(applied.columns[0])
    inner = Items(outer.values)
    chosen: list[Any] = []
    for row in range(applied.size):
        rows = outer.places(row)
        if not outer.present[row] or not inner.present[rows].all():
            chosen.append(None)
            continue
        parts = [inner.places(one) for one in rows.tolist()]
        chosen.append(np.concatenate(parts) if parts else np.array([], np.int64))
    return make_lists(inner.values, chosen, applied.kind)


def _nested(kind: pa.DataType) -> pa.DataType | None:
    return kind if pat.is_list(kind) and pat.is_list(kind.value_type) else None


def _array_repeat(applied: Applied) -> pa.Array:
    column, times = applied.columns
    chosen: list[Any] = []
    for row, number in enumerate(times.to_pylist()):
        if number is not None and number > MOST:
            raise too_large("array_repeat")
        chosen.append(None if number is None else np.full(max(number, 0), row))
    return make_lists(column, chosen, applied.kind)


def _repeated(operands: Sequence[Operand]) -> pa.DataType:
    kind = operands[0].kind
    if pat.is_nested(kind) or pat.is_string(kind) or pat.is_binary(kind):
        raise UnavailableError(f"array_repeat of {type_name(kind)} values is not available here")
    return pa.list_(kind)


def _sequence(applied: Applied) -> pa.Array:
    rows = zip(*(column.to_pylist() for column in applied.columns), strict=True)
    sequences: list[list[int] | None] = []
    for first, last, *steps in rows:
        if first is None or last is None or steps == [None]:
            sequences.append(None)
            continue
        step = steps[0] if steps else (1 if first <= last else -1)
        if (
            (step > 0 and first > last)
            or (step < 0 and first < last)
            or (step == 0 and first != last)
        ):
            raise PredicateError(
                "a sequence cannot get from its first to its last value with this step",
                detail=f"got {first}, {last}, {step}",
            )
        if step and abs(last - first) // abs(step) >= MOST:
            raise too_large("sequence")
        sequences.append(
            list(range(first, last + (1 if step > 0 else -1), step)) if step else [first]
        )
    return pa.array(sequences, applied.kind)


def _sequence_type(operands: Sequence[Operand]) -> pa.DataType:
    kind = common_of_all([one.kind for one in operands], "the arguments of sequence")
    if not pat.is_signed_integer(kind):
        raise UnavailableError(f"sequence of {type_name(kind)} values is not available here")
    return pa.list_(kind)


def _concat(applied: Applied) -> pa.Array:
    """Strings or arrays, concatenated."""
    if not pat.is_list(applied.kind):
        return concat_texts(applied)
    parts = [Items(as_type(column, applied.kind)) for column in applied.columns]
    firsts = np.cumsum([0, *(len(part.values) for part in parts)])
    chosen = [
        np.concatenate(
            [part.places(row) + first for part, first in zip(parts, firsts, strict=False)]
        )
        if all(part.present[row] for part in parts)
        else None
        for row in range(applied.size)
    ]
    return make_lists(pa.concat_arrays([part.values for part in parts]), chosen, applied.kind)


def _together(operands: Sequence[Operand]) -> pa.DataType:
    kinds = [one.kind for one in operands]
    if any(pat.is_list(kind) for kind in kinds):
        return common_of_all(kinds, "the arguments of CONCAT")
    return pa.string()


_SIZE: Final = Function((array_or_map,), _INT, _size)

FUNCTIONS: Final = {
    "concat": Function((array_or_text,), _together, _concat, several=True),
    "size": _SIZE,
    "cardinality": _SIZE,
    "array_size": Function((array,), _INT, _size),
    "array": Function((anything,), _array_type, _array, optional=1, several=True),
    "[]": Function((array_or_map, anything), _item_type, _item_at(0, strict=True)),
    "element_at": Function((array_or_map, anything), _item_type, _item_at(1, strict=True)),
    "try_element_at": Function((array_or_map, anything), _item_type, _item_at(1, strict=False)),
    "get": Function((array, int32), _item_kind, _item_at(0, strict=False)),
    "array_contains": Function((array, anything), _boolean_of_element, _contains),
    "array_position": Function(
        (array, anything), lambda o: (_element_type(o), pa.int64())[1], _position
    ),
    "array_remove": Function((array, anything), _element_type, _remove),
    "array_append": Function((array, anything), _element_type, _added(in_front=False)),
    "array_prepend": Function((array, anything), _element_type, _added(in_front=True)),
    "array_join": Function((_texts, plain_text, plain_text), pa.string(), _join, optional=1),
    "array_repeat": Function((anything, int32), _repeated, _array_repeat),
    "flatten": Function((_nested,), lambda o: o[0].kind.value_type, _flatten),
    "slice": Function((array, int32, int32), _first_kind, _slice),
    "sequence": Function((anything, anything, anything), _sequence_type, _sequence, optional=1),
    "map_keys": Function((mapping,), lambda o: pa.list_(o[0].kind.key_type), _keys),
    "map_values": Function((mapping,), lambda o: pa.list_(o[0].kind.item_type), _values),
    "map_contains_key": Function((mapping, anything), _key_asked, _contains_key),
}
