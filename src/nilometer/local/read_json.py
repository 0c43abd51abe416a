"""JSON lines as tables, in the types that Spark finds for them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, NoReturn

import pyarrow as pa

from nilometer.errors import OnlySparkError

_LONGS: Final = range(-(2**63), 2**63)
_Row = dict[str, Any]


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
    """The columns of all rows, in the order of their names."""
    found: dict[str, Any] = {}
    for row in rows:
        for name, value in row.items():
            kind = _KINDS.get(type(value))
            if kind is None or found.get(name) is not kind:
                found[name] = _wider(name, found.get(name), kind or _kind(name, value))
    return _struct(found)


def rows_as_table(rows: list[_Row], kind: pa.StructType) -> pa.Table:
    """Rows in these types, which later files may not have; other fields are left out."""
    try:
        array = pa.array(rows, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise OnlySparkError("a value is not of its column's type", detail=str(error)) from None
    schema = pa.schema([kind.field(i) for i in range(kind.num_fields)])
    return pa.Table.from_arrays(array.flatten(), schema=schema)


def _decode(line: str) -> Any:
    return json.loads(line, object_pairs_hook=_object, parse_constant=_refuse, parse_float=_float)


def _object(pairs: list[tuple[str, Any]]) -> _Row:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise OnlySparkError("an object has a field twice")
    return found


def _refuse(word: str) -> NoReturn:
    raise OnlySparkError("not every number is one", detail=f"got {word}")


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        _refuse(text)
    return value


_KINDS: Final = {str: pa.string(), bool: pa.bool_(), float: pa.float64()}


def _kind(name: str, value: Any) -> pa.DataType | None:
    """The type of one value; None: of NULL."""
    if value is None:
        return None
    if isinstance(value, int):
        if value not in _LONGS:
            raise OnlySparkError(f"column {name} holds whole numbers that are very long")
        return pa.int64()
    if isinstance(value, dict):
        return type_of_rows([value])
    if isinstance(value, list):
        item: Any = None
        for one in value:
            item = _wider(name, item, _KINDS.get(type(one)) or _kind(name, one))
        return pa.list_(item or pa.null())
    return _KINDS[type(value)]


def _wider(name: str, one: pa.DataType | None, other: pa.DataType | None) -> pa.DataType | None:
    """The type of values of both."""
    if one is None or other is None or one == other:
        return other if one is None else one
    if {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {one.field(i).name: one.field(i).type for i in range(one.num_fields)}
        for i in range(other.num_fields):
            field = other.field(i)
            fields[field.name] = _wider(name, fields.get(field.name), field.type)
        return _struct(fields)
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(_wider(name, _known(one), _known(other)) or pa.null())
    raise OnlySparkError(f"column {name} holds values of several types")


def _known(kind: pa.ListType) -> pa.DataType | None:
    return None if pa.types.is_null(kind.value_type) else kind.value_type


def _struct(found: dict[str, Any]) -> pa.StructType:
    """Fields in the order of their names, as Java has it; what is always NULL is text."""
    names = sorted(found, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    if len({name.lower() for name in names}) < len(names) or "" in names:
        raise OnlySparkError("the names of two columns differ only in case")
    return pa.struct([(name, _final(found[name])) for name in names])


def _final(kind: pa.DataType | None) -> pa.DataType:
    if kind is None or pa.types.is_null(kind):
        return pa.string()
    return pa.list_(_final(kind.value_type)) if pa.types.is_list(kind) else kind
