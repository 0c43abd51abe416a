"""Types and whole numbers as written in casts and functions."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from sqlglot import exp

_TYPES: Final[dict[exp.DType, pa.DataType]] = {
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.TEXT: pa.string(),
    exp.DType.BINARY: pa.binary(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    exp.DType.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    exp.DType.TIMESTAMPLTZ: pa.timestamp("us", tz="UTC"),
}
_MOST_DIGITS: Final = 38
_MOST_LETTERS: Final = 5


def read_type(tree: exp.Expr) -> pa.DataType | None:
    """The Arrow type that a cast names, if it is supported here."""
    name = tree.this
    if name is not exp.DType.DECIMAL:
        return None if tree.expressions else _TYPES.get(name)
    numbers = [whole_number(one.this) for one in tree.expressions]
    precision = numbers[0] if numbers else 10
    scale = numbers[1] if len(numbers) > 1 else 0
    if precision is None or scale is None or not 0 <= scale <= precision <= _MOST_DIGITS:
        return None
    return pa.decimal128(precision, scale) if precision else None


def whole_number(tree: exp.Expr | None) -> int | None:
    """The whole number as written; 0 if nothing is written."""
    if tree is None:
        return 0
    if isinstance(tree, exp.Neg):
        inner = whole_number(tree.this)
        return None if inner is None else -inner
    is_number = isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdecimal()
    return int(tree.name) if is_number and len(tree.name) <= _MOST_LETTERS else None
