"""Keep only needed columns in transit, in state and in the join's output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from nilometer.sql.expressions.scalars import RESULT_TIME, ColumnRef, Ref
from nilometer.sql.plan.carried_columns import leaves_as, partition_ref, selected_above
from nilometer.sql.plan.join_plan import Carried, JoinPlan, Source
from nilometer.sql.plan.types import TIMESTAMP, Types


def prune_columns(plan: JoinPlan) -> JoinPlan:
    """Set which columns each stream sends, and which of them results need."""
    types = Types(plan.catalog, plan.sources)
    wanted = [item.value for item in plan.items] + list(plan.after)
    leaving = dict.fromkeys(ref for value in wanted for ref in value.columns)
    leaving.pop(RESULT_TIME, None)
    output = dict.fromkeys(_as_carried(leaves_as(ref, plan, types), types) for ref in leaving)
    needed = [*output, *_needed_inside(plan, types)]
    sources = tuple(
        replace(source, carried=tuple(_in_order(source, needed, types))) for source in plan.sources
    )
    return replace(plan, sources=sources, output=tuple(output))


def _needed_inside(plan: JoinPlan, types: Types) -> Iterator[Carried]:
    for source in plan.sources:
        if not source.is_held:
            yield Carried(source.time, TIMESTAMP)
        if source.rows is not None:
            yield from (_as_carried(ref, types) for ref in _window_columns(source))
            selected = selected_above(source)
            if selected is not None:
                yield Carried(selected, pa.bool_())
    for key in plan.keys:
        for equal in key.classes:
            yield from (equal.of(stream) for stream in equal.streams)
    for residual in plan.residuals:
        yield from (_as_carried(ref, types) for ref in residual.columns)


def _window_columns(source: Source) -> Iterator[Ref]:
    """All declared columns, which break ties in time, and those of the partition."""
    assert source.rows is not None
    for name, kind in zip(source.relation.columns, source.relation.types, strict=True):
        if kind is not None:
            yield ColumnRef(source.name, name)
    for value in source.rows.partition:
        yield partition_ref(source, value)


def _as_carried(ref: Ref, types: Types) -> Carried:
    return Carried(ref, types.of_ref(ref))


def _in_order(source: Source, needed: Iterable[Carried], types: Types) -> list[Carried]:
    """The columns of one stream as it declares them, then what is computed."""
    own = dict.fromkeys(one for one in needed if one.ref.stream == source.name)
    names = {name: place for place, name in enumerate(source.relation.columns)}

    def place(one: Carried) -> tuple[int, int]:
        plain = isinstance(one.ref, ColumnRef) and not one.ref.fields
        as_it_is = plain and one.kind == types.of_ref(one.ref)
        if as_it_is and isinstance(one.ref, ColumnRef) and one.ref.column in names:
            return 0, names[one.ref.column]
        return 1, 0

    return sorted(own, key=place)
