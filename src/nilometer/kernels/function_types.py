"""The types of casts and of functions of numbers, by Spark's rules; None where there is none."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.types as pat

_MOST_DIGITS: Final = 38


def cast_type(kind: pa.DataType, to: pa.DataType) -> pa.DataType | None:
    """The type of a cast that is supported here and in Spark (ANSI)."""
    if kind == to or pat.is_null(kind):
        return to
    if is_text(to):
        return to if is_text(kind) or _is_printed(kind) else None
    if is_text(kind):
        return to if _is_simple(to) or _is_time(to) or pat.is_binary(to) else None
    if _is_simple(kind) and _is_simple(to):
        return to
    times = (_is_time(kind), _is_time(to))
    if all(times):
        return to
    if not any(times):
        return None
    # numbers are seconds since 1970; a date is not a number
    instant, other = (kind, to) if times[0] else (to, kind)
    is_number = _is_simple(other) and not pat.is_boolean(other)
    return to if pat.is_timestamp(instant) and is_number else None


def is_local_cast(kind: pa.DataType, to: pa.DataType | None) -> bool:
    """Whether a cast depends on the time zone."""
    kinds = (kind, to)
    has_instant = any(pat.is_timestamp(one) for one in kinds if one is not None)
    return has_instant and any(
        pat.is_date32(one) or is_text(one) for one in kinds if one is not None
    )


def _is_time(kind: pa.DataType) -> bool:
    return bool(pat.is_date32(kind) or (pat.is_timestamp(kind) and kind.tz))


def _is_printed(kind: pa.DataType) -> bool:
    is_number = pat.is_signed_integer(kind) or pat.is_decimal(kind) or pat.is_float64(kind)
    return bool(is_number or pat.is_boolean(kind) or _is_time(kind))


def _is_simple(kind: pa.DataType) -> bool:
    is_number = pat.is_signed_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind)
    return bool(is_number or pat.is_boolean(kind))


def is_text(kind: pa.DataType) -> bool:
    return bool(pat.is_string(kind) or pat.is_large_string(kind))


def round_type(kind: pa.DataType, digits: int) -> pa.DataType | None:
    """The type of ROUND(x, digits): a decimal may need one more integer digit."""
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
