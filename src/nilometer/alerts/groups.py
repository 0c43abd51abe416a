"""The signs of rows for each group of an alert."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from nilometer.alerts.condition import Condition, Signs
from nilometer.alerts.rule import Sign
from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.json_values import rows_of
from nilometer.kernels.row_groups import row_groups

_LONGEST: Final = 200
"""The maximum length of a value that is shown."""


@dataclass(frozen=True)
class Observation:
    """The signs of one row, or of all rows of an answer together, for a group."""

    key: str
    """The columns of PER and their values, as JSON; empty without PER."""
    sign: Sign
    value: str


def observations(rows: pa.Table, condition: Condition, signs: Signs) -> Iterator[Observation]:
    """Observations of consecutive rows: the first of each run of equal signs, and the last.

    They have the order of the rows.
    """
    if not len(signs.places):
        return
    keys, numbers = _keys(rows, condition.per)
    numbers = numbers[signs.places]
    order = np.argsort(numbers, kind="stable")
    code = (signs.fires.astype(np.int64) * 2 + signs.clears)[order]
    group = numbers[order]
    starts = np.flatnonzero(np.r_[True, (np.diff(group) != 0) | (np.diff(code) != 0)])
    lasts = np.r_[starts[1:], len(order)] - 1
    chosen = np.unique(np.r_[starts, lasts[np.r_[np.diff(group[starts]) != 0, True]]])
    at = np.sort(order[chosen])
    values = _values(rows.take(pa.array(signs.places[at])), condition.columns)
    for one, value in zip(at.tolist(), values, strict=True):
        sign = Sign(bool(signs.fires[one]), bool(signs.clears[one]))
        yield Observation(keys[int(numbers[one])], sign, value)


def answered(
    rows: pa.Table, condition: Condition, signs: Signs
) -> tuple[set[str], list[Observation]]:
    """The groups of an answer, and the signs of those whose rows have any.

    A group fires if one of its rows does; it clears if none fires and one clears.
    """
    keys, numbers = _keys(rows, condition.per)
    numbers = numbers[signs.places]
    fires, clears = _any(numbers, signs.fires, len(keys)), _any(numbers, signs.clears, len(keys))
    lasts = np.full(len(keys), -1, np.int64)
    lasts[numbers] = signs.places
    firing = np.flatnonzero(signs.fires)
    lasts[numbers[firing]] = signs.places[firing]
    known = np.flatnonzero(lasts >= 0)
    values = _values(rows.take(pa.array(lasts[known])), condition.columns)
    observed = [
        Observation(keys[one], Sign(bool(fires[one]), bool(clears[one] and not fires[one])), value)
        for one, value in zip(known.tolist(), values, strict=True)
    ]
    return set(keys), observed


def shown_key(key: str) -> str:
    """A key in readable form.

    >>> shown_key('{"room":3,"floor":"a"}')
    'room 3, floor a'
    """
    return ", ".join(f"{name} {value}" for name, value in json.loads(key).items()) if key else ""


def _any(numbers: Int64s, flags: Bools, size: int) -> Bools:
    flagged = np.zeros(size, np.bool_)
    flagged[numbers[flags]] = True
    return flagged


def _keys(rows: pa.Table, per: Sequence[str]) -> tuple[list[str], Int64s]:
    """The keys of all groups, and the group of each row."""
    if not per:
        return [""] if len(rows) else [], np.zeros(len(rows), np.int64)
    groups = row_groups([rows.column(one).combine_chunks() for one in per], len(rows))
    firsts = rows.select(list(per)).take(pa.array(groups.firsts))
    return [_dump(one) for one in rows_of(firsts)], groups.numbers


def _values(rows: pa.Table, columns: Sequence[str]) -> list[str]:
    chosen = rows.select(list(columns))
    if not columns:
        return ["{}"] * len(rows)
    return [_dump({name: _short(value) for name, value in one.items()}) for one in rows_of(chosen)]


def _short(value: Any) -> Any:
    text = value if isinstance(value, str) else _dump(value)
    return value if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
