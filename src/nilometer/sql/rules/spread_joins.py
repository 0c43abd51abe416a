"""Spread the rows of a key over several buckets, where one key has most of the rows.

A join by keys of rows in windows of time finds every result in exactly one bucket, however the
rows of one of its streams are dealt out, if those of all others are copied to where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from nilometer.errors import InputError
from nilometer.kernels.routing import route_in_parts
from nilometer.model.names import nearest
from nilometer.sql.physical.join_places import flat_columns, layouts
from nilometer.sql.plan.changes_plan import Block, ChangesPlan, Node, Plan, joins_of
from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.plan.parting import Parting
from nilometer.sql.rules.change_joins import change_joins

_SUMS: Final = "docs/cluster.md, under Hot keys, says how sums of a hot key are spread"


def spread_joins(plan: Plan, parting: Parting) -> Plan:
    """The plan with the rows of each key of its joins in so many buckets.

    Raises InputError where results would not be the same.
    """
    choose_stream(plan, parting.stream)
    if plan.buckets % parting.parts:
        raise InputError(
            f"{plan.buckets} buckets cannot be split into {parting.parts} parts of equal size",
            hint=f"write spread = {' or '.join(map(str, divisors(plan.buckets)))}, or choose "
            "another number of buckets as well",
        )
    if parting.parts == 1 and not isinstance(plan, ChangesPlan):
        return plan
    return change_joins(plan, lambda join: _spread(join, parting) if _is_join(join) else join)


def choose_stream(plan: Plan, wanted: str | None) -> str:
    """The stream whose rows are dealt out: the wanted one, or that of which most rows come.

    Raises InputError if there is none.
    """
    joins = [one for one in joins_of(plan) if _is_join(one)]
    _require_joins(plan, joins)
    if isinstance(plan, ChangesPlan) and _has_shared_join(plan.root):
        raise InputError(
            "an outer join needs all rows of a key in one bucket",
            detail="rows without a partner are found among all rows of their key",
            hint="leave out spread, or write an inner join",
        )
    for source in (source for one in joins for source in one.sources):
        if source.rows is not None:
            raise InputError(
                f"a ROWS window needs all rows of a key in one bucket: {source.name} {source.rows}",
                hint="leave out spread, or write a time window, such as [RANGE 10 SECONDS]",
            )
    possible = [one for one in joins[0].sources if not one.is_table and not one.is_held]
    for join in joins[1:]:
        possible = [one for one in possible if one.name in join.by_name]
    names = [one.name for one in possible]
    if not names:
        raise InputError(
            "the joins of this query have no stream in common that could be spread",
            hint="write a query for each of them",
        )
    if wanted is None:
        return max(possible, key=lambda one: one.relation.statistics.rate or 0.0).name
    chosen = next((name for name in names if name.lower() == wanted.lower()), None)
    if chosen is None:
        raise InputError(
            f"{wanted} does not take part in every keyed join of this query",
            hint=nearest(wanted, names) or f"write spread_stream = '{names[0]}'",
        )
    return chosen


def divisors(buckets: int) -> list[int]:
    """The numbers of parts that so many buckets can have.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    return [parts for parts in range(1, buckets + 1) if buckets % parts == 0]


def _is_join(plan: JoinPlan) -> bool:
    """Whether it is a join by a key, which can be spread."""
    return bool(plan.keys) and len(plan.sources) > 1


def _has_shared_join(root: Node) -> bool:
    """Whether the results of a join are used twice, as outer joins do."""
    used: list[Node] = []
    seen, waiting = {id(root)}, [root]
    while waiting:
        for one in waiting.pop().inputs:
            if isinstance(one, Block) and _is_join(one.plan):
                used.append(one)
            if id(one) not in seen:
                seen.add(id(one))
                waiting.append(one)
    return len(used) > len({id(one) for one in used})


def _require_joins(plan: Plan, joins: Sequence[JoinPlan]) -> None:
    if joins:
        return
    if any(len(one.sources) > 1 for one in joins_of(plan)):
        raise InputError(
            "only a join by a key can be spread",
            detail="this one has no key, so its rows are spread over all buckets already",
            hint="leave out spread",
        )
    raise InputError(
        "this query has no join of streams that can be spread",
        detail="it needs an inner join by a key, of rows in time windows; NOT EXISTS, IN and "
        "joins of answers need all rows of a key in one bucket",
        hint=f"leave out spread; {_SUMS}",
    )


def _spread(plan: JoinPlan, parting: Parting) -> JoinPlan:
    number, parts = plan.number(parting.stream), parting.parts
    keys = tuple(layout.keys for layout in layouts(plan))
    columns = flat_columns(plan.sources[number])
    return replace(
        plan,
        routing=route_in_parts(keys, plan.buckets, parts, number, columns),
        routing_reason=f"the rows of {parting.stream} with the same key are spread over {parts}",
        parting=parting,
    )
