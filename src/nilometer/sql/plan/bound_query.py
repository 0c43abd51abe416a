"""A query whose names are resolved, before rules make it a plan."""

from __future__ import annotations

from dataclasses import dataclass

from nilometer.errors import Place
from nilometer.model.windows import Window
from nilometer.sql.expressions.scalars import Scalar
from nilometer.sql.plan.changes_plan import Lifetime
from nilometer.sql.plan.join_plan import Item, Source


@dataclass(frozen=True)
class BoundQuery:
    """A query whose subqueries are flattened: sources, and the conditions between them."""

    sources: tuple[Source, ...]
    windows: tuple[Window, ...]
    conditions: tuple[Scalar, ...]
    items: tuple[Item, ...]
    windows_place: Place | None
    lifetimes: tuple[Lifetime, ...] = ()
    """How long rows are kept, where the answer changes; a stream may have no entry yet."""
