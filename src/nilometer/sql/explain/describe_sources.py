"""What a plan keeps of its sources, and how it finds matches, in words."""

from __future__ import annotations

from typing import Final

from nilometer.kernels.chunk import Kernel
from nilometer.kernels.expression_types import type_name
from nilometer.model.time import format_duration
from nilometer.sql.plan.join_plan import Carried, JoinKey, JoinPlan, Source
from nilometer.sql.plan.types import Types

_HOW_MATCHED: Final = {
    Kernel.HASH: "by key and time",
    Kernel.MERGE: "by time alone",
    Kernel.NESTED: "by scanning all rows",
}


def source_label(source: Source) -> str:
    """The name of a source, and of its relation if that differs."""
    if source.node is not None or source.name == source.relation.name:
        return source.name
    return f"{source.name} = {source.relation.name}"


def kept_columns(plan: JoinPlan, number: int) -> list[str]:
    """The columns of a source that its join keeps, without a synthetic time."""
    source = plan.sources[number]
    types = Types(plan.catalog, plan.sources)
    made_up = source.relation.time is None
    return [
        _column(one, types).removeprefix(f"{source.name}.")
        for one in source.carried
        if not (made_up and one.ref == source.time)
    ]


def describe_kernel(kernel: Kernel) -> str:
    """The kernel of a join, and what it does."""
    return f"{kernel.value}, matches are found {_HOW_MATCHED[kernel]}"


def key_label(key: JoinKey) -> str:
    """The values that matching rows have in common."""
    return " AND ".join(
        f"{' = '.join(map(str, equal.members))} ({type_name(equal.kind)})" for equal in key.classes
    )


def how_long(plan: JoinPlan, number: int) -> str:
    """How long rows of a source are kept, and until when."""
    source = plan.sources[number]
    if source.is_table:
        return "forever, as read when the query first started"
    late = _clock(source)
    if source.rows is not None:
        each = " of each partition" if source.rows.partition else ""
        many = "the last row" if source.rows.count == 1 else f"the last {source.rows.count} rows"
        return f"{many}{each}, until all streams have passed the next{late}"
    if plan.algorithm is not None:
        return f"until {plan.algorithm.name} removes it{late}"
    if not (passing := awaited(plan, number)):
        return f"not kept{late}"
    until = " and ".join(f"{o.name} has passed t{_plus(bound)}" for o, bound in passing)
    length = max(bound + other.relation.clock.lateness for other, bound in passing)
    rate = source.relation.statistics.rate
    rows = "" if rate is None else f", about {max(0, rate * length / 1e6):,.0f} rows"
    return f"{format_duration(max(0, length))}{rows}: until {until}{late}"


def awaited(plan: JoinPlan, number: int) -> list[tuple[Source, int]]:
    """The streams that must have passed a row, and by how much, before it can be dropped."""
    return [
        (other, plan.network.closed[number][j])
        for j, other in enumerate(plan.sources)
        if j != number and not other.is_table
    ]


def _plus(bound: int) -> str:
    if bound == 0:
        return ""
    return f" + {format_duration(bound)}" if bound > 0 else f" - {format_duration(-bound)}"


def _clock(source: Source) -> str:
    clock, parts = source.relation.clock, []
    if clock.ended:
        parts.append("has ended")
    if source.relation.time is None:
        parts.append("arrival time")
    if clock.lateness:
        parts.append(f"lateness {format_duration(clock.lateness)}")
    if clock.idle is not None:
        parts.append(f"idle after {format_duration(clock.idle)}")
    if source.relation.waits:
        parts.append(source.relation.waits)
    return f" ({', '.join(parts)})" if parts else ""


def _column(one: Carried, types: Types) -> str:
    same = types.of_ref(one.ref) == one.kind
    return str(one.ref) if same else f"{one.ref} as {type_name(one.kind)}"
