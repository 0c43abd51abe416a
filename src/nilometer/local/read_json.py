"""JSON lines as tables, with the types that Spark infers for them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, NoReturn, TypeAlias

import pyarrow as pa

from nilometer.errors import OnlySparkError

_LONGS: Final = range(-(2**63), 2**63)
_Row = dict[str, Any]
_Seen: TypeAlias = Any
"""The type of values seen so far: None if all were NULL, an Arrow type, a list of
what its items are, or a dictionary of what its fields are."""


def read_lines(content: bytes) -> list[_Row]:
    """The objects of all lines; an error if there is anything else."""
    try:
        lines = content.decode().removeprefix("\ufeff").split("\n")
        rows = [_decode(line) for line in lines if line and line != "\r"]
    except (ValueError, RecursionError) as error:
        raise OnlySparkError("not every line is a JSON object", detail=str(error)) from None
    if not all(isinstance(row, dict) for row in rows):
        raise OnlySparkError("not every line is a JSON object")
    return rows


def type_of_rows(rows: Iterable[_Row]) -> pa.StructType:
    """The columns of all rows, sorted by name."""
    kinds: dict[str, _Seen] = {}
    for row in rows:
        for name, value in row.items():
            kind = _KINDS.get(type(value))
            if kind is None or kinds.get(name) is not kind:
                kinds[name] = _wider(name, kinds.get(name), kind or _kind(name, value))
    return _final(kinds)


def rows_as_table(rows: list[_Row], kind: pa.StructType) -> pa.Table:
    """Rows in these types, which later files may not fit; other fields are left out."""
    try:
        array = pa.array(rows, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise OnlySparkError("a value is not of its column's type", detail=str(error)) from None
    schema = pa.schema([kind.field(i) for i in range(kind.num_fields)])
    return pa.Table.from_arrays(array.flatten(), schema=schema)


def _decode(line: str) -> Any:
    return json.loads(line, object_pairs_hook=_object, parse_constant=_refuse, parse_float=_float)


def _object(pairs: list[tuple[str, Any]]) -> _Row:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise OnlySparkError("an object has the same field twice")
    return fields


def _refuse(word: str) -> NoReturn:
    raise OnlySparkError("a number is not valid in JSON", detail=f"got {word}")


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        _refuse(text)
    return value


_KINDS: Final = {str: pa.string(), bool: pa.bool_(), float: pa.float64()}


def _kind(name: str, value: Any) -> _Seen:
    if value is None:
        return None
    if isinstance(value, int):
        if value not in _LONGS:
            raise OnlySparkError(f"column {name} holds whole numbers that are very long")
        return pa.int64()
    if isinstance(value, dict):
        return {key: _KINDS.get(type(one)) or _kind(key, one) for key, one in value.items()}
    items: _Seen = None
    for one in value:
        items = _wider(name, items, _KINDS.get(type(one)) or _kind(name, one))
    return [items]


def _wider(name: str, one: _Seen, other: _Seen) -> _Seen:
    """The common type of the values of both."""
    if one is None or other is None or one == other:
        return other if one is None else one
    if isinstance(one, dict) and isinstance(other, dict):
        both = {**one, **other}
        return {key: _wider(key, one.get(key), other.get(key)) for key in both}
    if isinstance(one, list) and isinstance(other, list):
        return [_wider(name, one[0], other[0])]
    numbers = (pa.int64(), pa.float64())
    if one in numbers and other in numbers:
        return pa.float64()
    raise OnlySparkError(f"column {name} holds values of several types")


def _final(seen: _Seen) -> pa.DataType:
    """The type; fields are sorted by name, and what is always NULL is text."""
    if seen is None:
        return pa.string()
    if isinstance(seen, list):
        return pa.list_(_final(seen[0]))
    if not isinstance(seen, dict):
        return seen
    names = sorted(seen, key=lambda name: name.encode("utf-16-be", "surrogatepass"))  # as in Java
    if len({name.lower() for name in names}) < len(names) or "" in names:
        raise OnlySparkError("the names of two columns differ only in case")
    return pa.struct([(name, _final(seen[name])) for name in names])
