"""CAST of values to texts, as Spark (ANSI) writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.arrays import Int64s
from nilometer.kernels.local_times import DAY, civil, days_of, micros_of, to_local

_PLAIN_FROM: Final = 1e-3
_PLAIN_TO: Final = 1e7
"""Numbers between these are written without an exponent."""


def print_values(column: pa.Array, zone: str) -> pa.Array:
    """The values of a column as texts."""
    kind = column.type
    if pat.is_decimal(kind):
        return _each(column, lambda value: format(value, "f"))
    if pat.is_floating(kind):
        return _each(column, print_double)
    if pat.is_date32(kind):
        return _masked(print_dates(days_of(column)), column)
    if pat.is_timestamp(kind):
        return _masked(print_times(to_local(micros_of(column), zone)), column)
    return column.cast(pa.string())


def _each(column: pa.Array, write: Callable[[Any], str]) -> pa.Array:
    return pa.array([None if v is None else write(v) for v in column.to_pylist()], pa.string())


def _masked(texts: list[str], column: pa.Array) -> pa.Array:
    return pa.array(texts, pa.string(), mask=column.is_null().to_numpy(zero_copy_only=False))


def print_double(value: float) -> str:
    """The shortest number that parses to a DOUBLE, as Java 19 and later write it.

    >>> print_double(0.1), print_double(1e7), print_double(5e-324)
    ('0.1', '1.0E7', '4.9E-324')
    """
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if np.signbit(value) else "0.0"
    sign, size = "-" if value < 0 else "", abs(value)
    mantissa, exponent = np.format_float_scientific(size, trim="-").split("e")
    digits, power = mantissa.replace(".", ""), int(exponent)
    if len(digits) == 1 and float(two := f"{size:.1e}") == size:  # Java takes the nearest of two
        digits, power = two[0] + two[2].replace("0", ""), int(two[4:])
    if not _PLAIN_FROM <= size < _PLAIN_TO:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    return f"{sign}{digits[: power + 1]:0<{power + 1}}.{digits[power + 1 :] or '0'}"


def print_dates(days: Int64s) -> list[str]:
    """Days since 1970 as 2026-01-31."""
    parts = zip(*(part.tolist() for part in civil(days)), strict=True)
    return [f"{print_year(year)}-{month:02}-{day:02}" for year, month, day in parts]


def print_year(year: int) -> str:
    """A year of at least four digits, with its sign where it needs one."""
    if 0 <= year <= 9999:
        return f"{year:04}"
    return f"+{year}" if year > 0 else f"-{-year:04}"


def print_times(local: Int64s) -> list[str]:
    """Local times as 2026-01-31 12:00:00.5, without zeros at the end."""
    texts = []
    for day, rest in zip(print_dates(local // DAY), (local % DAY).tolist(), strict=True):
        seconds, micros = divmod(rest, 1_000_000)
        fraction = f".{micros:06}".rstrip("0").rstrip(".")
        hour, minute = seconds // 3600, seconds // 60 % 60
        texts.append(f"{day} {hour:02}:{minute:02}:{seconds % 60:02}{fraction}")
    return texts
