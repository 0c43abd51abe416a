"""Intervals of months and years, which have no length."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

_MONTHS: Final = {"MONTH": 1, "MONTHS": 1, "YEAR": 12, "YEARS": 12}
_NUMBER: Final = re.compile(r"[-+]?\d{1,9}")
_BOTH: Final = re.compile(r"([-+]?)(\d{1,8})-(\d{1,2})")
_LONGEST: Final = 120_000
"""The months that a date may be moved by: 10,000 years."""


def months_of(tree: exp.Expr) -> int | None:
    """The months of an interval that is written; None if it is another expression."""
    tree = tree.unnest()
    if isinstance(tree, exp.Neg):
        inner = months_of(tree.this)
        return None if inner is None else -inner
    if not isinstance(tree, exp.Interval) or tree.unit is None or tree.this is None:
        return None
    text, unit = tree.this.name.strip(), tree.unit
    if isinstance(unit, exp.IntervalSpan):
        is_both = (unit.this.name.upper(), unit.expression.name.upper()) == ("YEAR", "MONTH")
        parts = _BOTH.fullmatch(text)
        if not is_both or parts is None or int(parts[3]) > 11:
            return None
        months = int(parts[2]) * 12 + int(parts[3])
        months = -months if parts[1] == "-" else months
    else:
        size = _MONTHS.get(unit.name.upper())
        if size is None or not _NUMBER.fullmatch(text):
            return None
        months = int(text) * size
    return months if abs(months) <= _LONGEST else None
