"""ALTER QUERY q SET (…): other limits, or other buckets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from nilometer.database.bucket_options import RequestedBuckets, hosted_id, with_requested
from nilometer.database.home import Home
from nilometer.database.lifecycle import QueryLifecycle
from nilometer.database.limits import altered_options, limits_of, require_no_shedding
from nilometer.database.query_run import QueryRun
from nilometer.database.query_status import QueryLimits
from nilometer.errors import InputError

LimitChange: TypeAlias = Callable[[QueryLimits], QueryLimits]
"""The limits of a query, given the default ones."""


def alter_query(
    run: QueryRun,
    change: LimitChange,
    requested: RequestedBuckets,
    home: Home,
    lifecycle: QueryLifecycle,
) -> None:
    """Change the limits of a query, or its buckets; where it must stop for that, it is stopped."""
    query = lifecycle.require(run.name)
    before = limits_of(query)
    limits = change(before)
    if limits.engine is not before.engine:
        raise InputError(
            "where a query runs cannot be changed",
            hint=f"drop {query.name}, and create it WITH (engine = '{limits.engine}')",
        )
    if hosted_id(query) is None:
        require_no_shedding(limits, "the query has an engine of its own")
    elif limits.shed_by != before.shed_by:
        lifecycle.plan_for_engine(lifecycle.plan_as_kept(query), limits)
    after = with_requested(query, requested, lambda: lifecycle.plan_as_kept(query)[0])
    if after.options != query.options:
        lifecycle.change_buckets(run, query, after)
        query = lifecycle.require(query.name)
    if limits != before or requested.is_nothing:
        home.catalog.set_query_options(query.name, altered_options(query, limits))
        lifecycle.halt(run)
