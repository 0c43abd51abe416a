"""Refusals of what operators over changes cannot do, each with its position."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from nilometer.errors import Place, SqlError, SqlTypeError
from nilometer.kernels.aggregate_types import has_map
from nilometer.kernels.expression_types import type_name
from nilometer.sql.bind.scope import Scope
from nilometer.sql.expressions.scalars import column
from nilometer.sql.plan.changes_plan import Column
from nilometer.sql.plan.join_plan import Item

_ADDED = ("_time", "_diff")


def require_comparable(kind: pa.DataType, place: Place, what: str) -> None:
    """Refuse rows that cannot be compared for equality."""
    if has_map(kind):
        raise SqlTypeError(
            f"{what} cannot be a map: maps cannot be compared",
            place=place,
            detail=f"got {type_name(kind)}",
            hint="use single entries of the map",
        )


def require_comparable_rows(columns: Sequence[Column], place: Place, what: str) -> None:
    """The same for all columns of rows that are compared as a whole."""
    for one in columns:
        require_comparable(one.kind, place, f"column {one.name} of {what}")


def refuse_added_names(items: Sequence[Item]) -> None:
    """Refuse columns with the names of those that every change has."""
    for item in items:
        if item.name.lower() in _ADDED:
            raise SqlError(
                f"every change already has a column {item.name.lower()}",
                place=item.value.place,
                detail="in a changelog, _time is when a change takes effect, _diff how many rows "
                "are added or retracted",
                hint="leave it out, or give this column another name: … AS other",
            )


def without_time(items: Sequence[Item], scope: Scope) -> list[Item]:
    """The items without the time of a result, which every appended result has anyway."""
    times = [column(time) for unit in scope.units for time in unit.times]
    return [i for i in items if i.name.lower() != _ADDED[0] or i.value.tree not in times]
