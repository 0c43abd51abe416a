"""Instants plus days in a time zone: the same local time of another day, even across DST."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.arithmetic_errors import overflow
from nilometer.kernels.arrays import Int64s, as_int64
from nilometer.kernels.local_times import DAY, INSTANT, micros_of, to_instant, to_local
from nilometer.model.expressions import Operator

_MOST = 2**62


def is_local_sum(left: pa.DataType, right: pa.DataType, zone: str) -> bool:
    """Whether a sum of instants depends on a local clock, whose days differ in length."""
    if zone in ("", "UTC"):
        return False
    instants = [kind for kind in (left, right) if pat.is_timestamp(kind) and kind.tz]
    intervals = [kind for kind in (left, right) if pat.is_duration(kind)]
    return bool(instants) and len(instants) + len(intervals) == 2


def add_locally(operator: Operator, left: pa.Array, right: pa.Array, zone: str) -> pa.Array:
    """An instant and an interval, or the interval between two instants, by a zone's clock."""
    if pat.is_timestamp(left.type) and pat.is_timestamp(right.type):
        valid = np.asarray(left.is_valid()) & np.asarray(right.is_valid())
        apart = to_local(micros_of(left), zone) - to_local(micros_of(right), zone)
        return pa.array(apart, mask=~valid).cast(pa.duration("us"))
    return add_interval(operator, left, right, zone)


def add_interval(operator: Operator, left: pa.Array, right: pa.Array, zone: str) -> pa.Array:
    """The instants that are an interval later, or earlier: whole days first, then the rest."""
    if pat.is_duration(left.type):
        left, right = right, left
    valid = np.asarray(left.is_valid()) & np.asarray(right.is_valid())
    lengths = as_int64(right.cast(pa.duration("us")).cast(pa.int64()).fill_null(0))
    if operator is Operator.MINUS:
        lengths = -lengths
    days: Int64s = np.sign(lengths) * (np.abs(lengths) // DAY)
    micros = micros_of(left)
    if (np.abs(micros.astype(np.float64)) + np.abs(lengths.astype(np.float64)) > _MOST).any():
        raise overflow()
    instants = plus_local(micros, days * DAY, zone) + (lengths - days * DAY)
    return pa.array(instants, mask=~valid).cast(INSTANT)


def plus_local(micros: Int64s, more: Int64s, zone: str) -> Int64s:
    """The instants at which a zone's clock shows that much more; a repeated hour is not left."""
    local = to_local(micros, zone)
    moved = local + more
    same = moved - (local - micros)
    again = to_local(same, zone) == moved
    instants: Int64s = np.where(again, same, to_instant(moved, zone))
    return instants
