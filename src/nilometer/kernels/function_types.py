"""The types of casts and of functions of numbers, by Spark's rules; None where there is none."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.types as pat

_MOST_DIGITS: Final = 38


def cast_type(kind: pa.DataType, to: pa.DataType) -> pa.DataType | None:
    """The type of a cast that is done here: of numbers and truth values, not of texts."""
    if kind == to or pat.is_null(kind):
        return to
    simple = pat.is_boolean(kind) or pat.is_signed_integer(kind)
    if is_text(to):
        return to if simple or is_text(kind) else None
    return to if _is_simple(kind) and _is_simple(to) else None


def _is_simple(kind: pa.DataType) -> bool:
    is_number = pat.is_signed_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind)
    return bool(is_number or pat.is_boolean(kind))


def is_text(kind: pa.DataType) -> bool:
    return bool(pat.is_string(kind) or pat.is_large_string(kind))


def round_type(kind: pa.DataType, digits: int) -> pa.DataType | None:
    """The type of ROUND(x, digits): a decimal may need one more digit before the point."""
    if pat.is_signed_integer(kind) or pat.is_floating(kind):
        return kind
    if not pat.is_decimal(kind):
        return None
    whole = kind.precision - kind.scale + 1
    if digits < 0:
        return pa.decimal128(min(max(whole, 1 - digits), _MOST_DIGITS), 0)
    scale = min(kind.scale, digits)
    return pa.decimal128(min(whole + scale, _MOST_DIGITS), scale)


def whole_type(kind: pa.DataType) -> pa.DataType | None:
    """The type of FLOOR(x) and CEIL(x)."""
    if pat.is_signed_integer(kind) or pat.is_floating(kind):
        return pa.int64()
    if not pat.is_decimal(kind):
        return None
    if kind.scale == 0:
        return kind
    return pa.decimal128(min(kind.precision - kind.scale + 1, _MOST_DIGITS), 0)
